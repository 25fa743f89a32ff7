"""The lines of a `.lst` beside the records that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from imagenet_ops.domain.record_scan import FoundRecord
from imagenet_ops.errors import DataError
from imagenet_ops.records.payloads import read_record_id
from imagenet_ops.records.texts import format_name


def pair_with_lines(records: Iterable[FoundRecord], list_path: Path) -> Iterator[tuple[FoundRecord, bytes]]:
    """(record, its line without id and line feed). Lines of records that are not there are passed over.

    Raises DataError where the list has no line for a record, or not in the records' order.
    """
    with open(list_path, "rb") as file:
        lines = _parse_lines(file, list_path)
        for found in records:
            record_id = read_record_id(found.payload)
            for line_id, line in lines:
                if line_id == record_id:
                    yield found, line
                    break
            else:
                raise DataError(
                    f"{format_name(list_path)}: no line for record {record_id} at byte {found.offset:,}, or not in the "
                    "records' order; --no-list goes without the lists"
                )


def _parse_lines(file: BinaryIO, list_path: Path) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, 1):
        record_id, _, rest = line.removesuffix(b"\n").partition(b"\t")
        try:
            yield int(record_id), rest
        except ValueError:
            raise DataError(f"{format_name(list_path)}: line {number:,}: begins with no record id") from None
