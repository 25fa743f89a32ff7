"""records merge: several record files become one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from imagenet_ops.domain.record_scan import FoundRecord
from imagenet_ops.records.list_lines import pair_with_lines
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.writing import RecordWriter, companion


def merge_records(
    paths: Sequence[Path], target: Path, reader: RecordReader, outputs: Outputs, *, renumber: bool, with_list: bool
) -> RecordWriter:
    """All records in the order of `paths`. A list is written where every input has one, unless it is not wanted.

    Raises DataError at the second record with the same id, unless they are numbered anew from 0 on.
    """
    with_list = with_list and all(companion(path, ".lst").is_file() for path in paths)
    with outputs, reader.watch("merge", paths):
        writer = RecordWriter(outputs, target, with_list=with_list)
        for path in paths:
            for found, line in _records_with_lines(path, reader, with_list):
                writer.write(found, path, new_id=writer.num_records if renumber else None, line=line)
    return writer


def _records_with_lines(path: Path, reader: RecordReader, with_list: bool) -> Iterator[tuple[FoundRecord, bytes]]:
    if with_list:
        return pair_with_lines(reader.records(path), companion(path, ".lst"))
    return ((found, b"") for found in reader.records(path))
