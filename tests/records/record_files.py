"""Record files made in code, and read back."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

from imagenet_ops.domain.recordio import ImageRecord, encode_record, iterate_records, pack_image, unpack_image
from tests.builders import jpeg


def tiny_records(count: int, first_id: int = 0) -> list[ImageRecord]:
    """Labels 0, 1, 2, 0, …; no two images alike."""
    return [
        ImageRecord(first_id + index, (float(index % 3),), jpeg(16 + index, 12 + index, seed=first_id + index))
        for index in range(count)
    ]


def encode(records: Iterable[ImageRecord]) -> bytes:
    return b"".join(encode_record(pack_image(record)) for record in records)


def offsets_of(records: list[ImageRecord]) -> list[int]:
    """Where each begins, and the end."""
    return [len(encode(records[:index])) for index in range(len(records) + 1)]


def write_records(path: str | Path, records: list[ImageRecord], with_list: bool = False) -> None:
    """The `.rec` alone, or with its `.lst`: no command needs an index."""
    Path(path).write_bytes(encode(records))
    if with_list:
        Path(path).with_suffix(".lst").write_text("".join(map(list_line, records)))


def list_line(record: ImageRecord) -> str:
    return f"{record.record_id}\t{record.labels[0]:.6f}\tn01/{record.record_id}.JPEG\n"


def read_records(path: str | Path) -> list[ImageRecord]:
    data = Path(path).read_bytes()
    return [unpack_image(payload, str(path)) for _, payload in iterate_records(io.BytesIO(data).read, str(path))]


def index_of(records: list[ImageRecord]) -> str:
    """The `.idx` that belongs to a file of these records."""
    return "".join(
        f"{record.record_id}\t{offset}\n" for record, offset in zip(records, offsets_of(records), strict=False)
    )


def damage(path: str | Path, offset: int, new: bytes) -> None:
    data = bytearray(Path(path).read_bytes())
    data[offset : offset + len(new)] = new
    Path(path).write_bytes(data)
