"""records ls: a line a record.

[file]  offset  id  labels  bytes  format  width×height      between tabs; the file only where several are listed
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from imagenet_ops.domain.record_scan import FoundRecord
from imagenet_ops.domain.recordio import unpack_image
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.texts import find_header, format_label, format_name

_MAX_LABELS = 16


def list_records(paths: Sequence[Path], reader: RecordReader, *, limit: int | None = None) -> Iterator[str]:
    """Lines of the records of each file, of the first `limit` where it is given."""
    with reader.watch("ls", paths):
        for path in paths:
            first_column = f"{format_name(path)}\t" if len(paths) > 1 else ""
            for found in islice(reader.records(path), limit):
                yield first_column + format_record(found)


def format_record(found: FoundRecord) -> str:
    record = unpack_image(found.payload, "")
    labels = ",".join(map(format_label, record.labels[:_MAX_LABELS]))
    if len(record.labels) > _MAX_LABELS:
        labels += f",... {len(record.labels):,} in all"
    header = find_header(record.image)
    kind, size = (header, "-") if isinstance(header, str) else (header.format, f"{header.width}x{header.height}")
    return f"{found.offset}\t{record.record_id}\t{labels}\t{len(record.image)}\t{kind}\t{size}"
