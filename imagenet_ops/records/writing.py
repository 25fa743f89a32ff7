"""Writes records on into a new `.rec` with its `.idx`, and its `.lst` where there are lines for one.

{name}.rec      the records
{name}.idx      record id, tab, offset: a line a record
{name}.lst      record id, tab, labels and path: a line a record
"""

from __future__ import annotations

from pathlib import Path

from imagenet_ops.domain.record_scan import FoundRecord
from imagenet_ops.domain.recordio import encode_record
from imagenet_ops.errors import DataError
from imagenet_ops.records.id_set import IdSet
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.payloads import read_record_id, replace_record_id
from imagenet_ops.records.texts import format_count, format_name


def companion(path: Path, suffix: str) -> Path:
    """The file beside a record file: `a.rec` and `a` have the index `a.idx`, `a.bin` has `a.bin.idx`."""
    return path.with_name(path.name.removesuffix(".rec") + suffix)


class IndexIds:
    """The ids of one index."""

    def __init__(self) -> None:
        self._ids = IdSet()

    def add(self, record_id: int, source: Path, found: FoundRecord) -> None:
        """Raises DataError for an id that is there: MXNet takes the last of them and never reads the others."""
        if not self._ids.add(record_id):
            raise DataError(
                f"{format_name(source)}: byte {found.offset:,}: record id {record_id} is there twice, an index holds "
                "it once; `records merge --renumber` gives new ids from 0 on"
            )


class RecordWriter:
    """One chunk under way; it is shown with all others of `outputs`."""

    def __init__(self, outputs: Outputs, path: Path, *, with_list: bool = False) -> None:
        """`path` with or without `.rec`. Where no list is written, an old one goes: it would tell of other records."""
        self.path = companion(path, ".rec")
        self.num_records = 0
        self._ids = IndexIds()
        outputs.claim(self.path)
        self._index = outputs.create(companion(path, ".idx"))
        self._list = outputs.create(companion(path, ".lst")) if with_list else None
        if not with_list:
            outputs.remove(companion(path, ".lst"))
        self._file = outputs.create(self.path)

    @property
    def num_bytes(self) -> int:
        return self._file.num_bytes

    def write(self, found: FoundRecord, source: Path, *, new_id: int | None = None, line: bytes = b"") -> None:
        """The record of `source` as it is, but for a new id; `line` is its list line without the id.

        Raises DataError for an id that was written before.
        """
        record_id = read_record_id(found.payload) if new_id is None else new_id
        self._ids.add(record_id, source, found)
        payload = found.payload if new_id is None else replace_record_id(found.payload, new_id)
        self._index.write(b"%d\t%d\n" % (record_id, self._file.num_bytes))
        if self._list:
            self._list.write(b"%d\t%s\n" % (record_id, line))
        self._file.write(encode_record(payload))
        self.num_records += 1

    def finish(self) -> None:
        """Nothing more comes: the files are closed, still aside."""
        for file in (self._index, self._list, self._file):
            if file:
                file.finish()

    def describe(self) -> str:
        return f"{format_name(self.path)}: {format_count(self.num_records, 'record')}, {self.num_bytes:,} bytes"
