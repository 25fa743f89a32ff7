"""MXNet's RecordIO: the container, and the image record inside it.

Source of the format: dmlc-core `include/dmlc/recordio.h` and `src/recordio.cc`; mxnet `python/mxnet/recordio.py`.
All numbers are little-endian.

    record  := part+
    part    := magic u32 | cflag << 29 + length u32 | bytes | zeros up to a multiple of 4
    cflag   := 0 the whole record · 1 first part · 2 middle part · 3 last part
    image   := flag u32 | label f32 | id u64 | id2 u64 | flag × f32 labels | encoded image

A record is cut wherever the magic stands at a multiple of 4 inside it: the cut takes the four bytes out, and a reader
puts them back between two parts. So an aligned magic in a file is always the head of a part.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from imagenet_ops.errors import DataError

MAGIC = struct.pack("<I", 0xCED7230A)
MAX_RECORD_BYTES = 2**29 - 1
_PART_HEAD = struct.Struct("<4sI")
_IMAGE_HEAD = struct.Struct("<IfQQ")
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)


@dataclass(frozen=True)
class ImageRecord:
    """One image with its labels, as MXNet's iterators take it; `record_id` is the `.lst` line's index."""

    record_id: int
    labels: tuple[float, ...]
    image: bytes


def encode_record(payload: bytes) -> bytes:
    """The record's bytes in the file. Raises DataError for a payload of 2^29 bytes or more."""
    _require_length(len(payload))
    pieces = _cut_at_aligned_magic(payload)
    if len(pieces) == 1:
        return _encode_part(_WHOLE, payload)
    flags = [_FIRST, *[_MIDDLE] * (len(pieces) - 2), _LAST]
    return b"".join(_encode_part(flag, piece) for flag, piece in zip(flags, pieces, strict=True))


def encode_image(record: ImageRecord, *, holds_magic: bool) -> list[bytes]:
    """An image record's bytes in the file as pieces to be joined, of which the image itself is not copied.

    `holds_magic` says whether MAGIC stands in the image at a multiple of 4. Raises DataError for a record of 2^29 bytes
    or more.
    """
    head = _encode_image_head(record)
    if holds_magic or MAGIC in head:
        return [encode_record(head + record.image)]
    length = _require_length(len(head) + len(record.image))
    return [_PART_HEAD.pack(MAGIC, length) + head, record.image, bytes(-length % 4)]


def iterate_records(read: Callable[[int], bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """(offset, payload) of every record; `read(n)` gives the next n bytes, fewer only at the end.

    Raises DataError, naming `name` and the position, for anything that is not a whole, well-formed record.
    """
    position = 0
    while head := read(_PART_HEAD.size):
        offset = position
        pieces = []
        expected = {_WHOLE, _FIRST}
        while True:
            flag, length = _decode_part_head(head, expected, name, position)
            padded = -(-length // 4) * 4
            body = read(padded)
            if len(body) < padded:
                raise DataError(
                    f"{name}: byte {position:,}: record cut short: {padded:,} bytes expected, {len(body):,} left"
                )
            pieces.append(body[:length])
            position += _PART_HEAD.size + padded
            if flag in (_WHOLE, _LAST):
                break
            expected = {_MIDDLE, _LAST}
            head = read(_PART_HEAD.size)
        yield offset, MAGIC.join(pieces)


def pack_image(record: ImageRecord) -> bytes:
    """The payload of an image record: one label goes into the head, several go behind it."""
    return _encode_image_head(record) + record.image


def unpack_image(payload: bytes, name: str) -> ImageRecord:
    """The image record in a payload. Raises DataError, naming `name`, where it is too short to be one."""
    if len(payload) < _IMAGE_HEAD.size:
        raise DataError(f"{name}: an image record of {len(payload)} bytes; its head alone has {_IMAGE_HEAD.size}")
    flag, label, record_id, _ = _IMAGE_HEAD.unpack_from(payload)
    start = _IMAGE_HEAD.size + 4 * flag
    if len(payload) < start:
        raise DataError(f"{name}: an image record of {len(payload)} bytes that claims {flag} labels")
    labels = struct.unpack_from(f"<{flag}f", payload, _IMAGE_HEAD.size) if flag else (label,)
    return ImageRecord(record_id, labels, payload[start:])


def _encode_image_head(record: ImageRecord) -> bytes:
    if len(record.labels) == 1:
        return _IMAGE_HEAD.pack(0, record.labels[0], record.record_id, 0)
    labels = struct.pack(f"<{len(record.labels)}f", *record.labels)
    return _IMAGE_HEAD.pack(len(record.labels), 0.0, record.record_id, 0) + labels


def _require_length(num_bytes: int) -> int:
    if num_bytes > MAX_RECORD_BYTES:
        raise DataError(f"a record of {num_bytes:,} bytes; RecordIO holds at most {MAX_RECORD_BYTES:,}")
    return num_bytes


def decode_image(read: Callable[[int], bytes], name: str) -> ImageRecord:
    """The next image record, read as by `iterate_records`. Raises DataError where there is no whole one."""
    for _, payload in iterate_records(read, name):
        return unpack_image(payload, name)
    raise DataError(f"{name}: no record where one is expected")


def _cut_at_aligned_magic(payload: bytes) -> list[bytes]:
    pieces, start, found = [], 0, payload.find(MAGIC)
    while found != -1:
        if found % 4 == 0:
            pieces.append(payload[start:found])
            start = found + 4
            found = payload.find(MAGIC, start)
        else:
            found = payload.find(MAGIC, found + 1)
    return [*pieces, payload[start:]]


def _encode_part(flag: int, piece: bytes) -> bytes:
    padding = bytes(-len(piece) % 4)
    return _PART_HEAD.pack(MAGIC, flag << 29 | len(piece)) + piece + padding


def _decode_part_head(head: bytes, expected: set[int], name: str, position: int) -> tuple[int, int]:
    if len(head) < _PART_HEAD.size:
        raise DataError(f"{name}: byte {position:,}: record cut short in its head")
    magic, length_and_flag = _PART_HEAD.unpack(head)
    flag, length = length_and_flag >> 29, length_and_flag & MAX_RECORD_BYTES
    if magic != MAGIC:
        raise DataError(f"{name}: byte {position:,}: {magic.hex()} where RecordIO's magic {MAGIC.hex()} is expected")
    if flag not in expected:
        raise DataError(f"{name}: byte {position:,}: part flag {flag}, expected one of {sorted(expected)}")
    return flag, length
