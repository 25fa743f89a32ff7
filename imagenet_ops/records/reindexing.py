"""records reindex: the `.idx` of a record file, made from what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from imagenet_ops.records.output import OutputFile, Outputs
from imagenet_ops.records.payloads import read_record_id
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.writing import IndexIds, companion


def reindex_records(paths: Sequence[Path], reader: RecordReader, outputs: Outputs) -> list[tuple[Path, int]]:
    """(index, number of its lines) for each file. Raises DataError at the second record with the same id."""
    with outputs, reader.watch("reindex", paths):
        indexes = [outputs.create(companion(path, ".idx")) for path in paths]
        return [(index.path, _write_index(path, reader, index)) for path, index in zip(paths, indexes, strict=True)]


def _write_index(path: Path, reader: RecordReader, index: OutputFile) -> int:
    ids, count = IndexIds(), 0
    for found in reader.records(path):
        record_id = read_record_id(found.payload)
        ids.add(record_id, path, found)
        index.write(b"%d\t%d\n" % (record_id, found.offset))
        count += 1
    index.finish()
    return count
