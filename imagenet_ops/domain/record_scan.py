"""Image records in a file that may be damaged: every whole one where it lies, and every range that is lost.

A record is whole when its parts are as `recordio` draws them, no aligned magic lies inside one of them, an image
record's head fits in, and it ends where the file or its neighbour says so. What is lost ends at the next such record,
sought from just behind the damaged head: a length that is too great hides no good record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from imagenet_ops.domain.recordio import MAGIC, MAX_RECORD_BYTES

_PART_HEAD = struct.Struct("<4sI")
_IMAGE_HEAD_BYTES = 24
_MAX_LABELS = 2**20  # a head that claims more is no head but pixels, and its labels would fill the memory
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)
_STARTS, _CONTINUES = (_WHOLE, _FIRST), (_MIDDLE, _LAST)
_IMAGE_ENDS = (b"\xff\xd9", b"IEND\xaeB\x60\x82")  # JPEG's end of image, PNG's last chunk
_BLOCK_BYTES = 2**20  # a multiple of 4, so that an aligned magic lies in one block


@dataclass(frozen=True)
class FoundRecord:
    """A whole record in the bytes from `offset` to before `end`; `payload` is the image record in it."""

    offset: int
    end: int
    payload: bytes


@dataclass(frozen=True)
class LostRange:
    """The bytes from `offset` to before `end` hold no whole record; `reason` names the byte at fault."""

    offset: int
    end: int
    reason: str


def scan_records(read_at: Callable[[int, int], bytes], num_bytes: int) -> Iterator[FoundRecord | LostRange]:
    """All of a file of `num_bytes` in order and without gaps, one record at a time.

    `read_at(offset, n)` gives n bytes; it is never asked for bytes behind the file's end.
    """
    file = _File(read_at, num_bytes)
    offset = 0
    while offset < num_bytes:
        found = _find_at(file, offset)
        yield found
        offset = found.end


class _Damaged(Exception):
    """No whole record starts here; the text is the reason."""


class _File:
    def __init__(self, read_at: Callable[[int, int], bytes], num_bytes: int) -> None:
        self._read_at = read_at
        self.num_bytes = num_bytes

    def read(self, offset: int, num_bytes: int) -> bytes:
        """As many bytes as asked for, fewer only at the file's end."""
        return self._read_at(offset, min(num_bytes, self.num_bytes - offset))

    def blocks(self, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
        for start in range(offset, end, _BLOCK_BYTES):
            yield start, self.read(start, min(_BLOCK_BYTES, end - start))

    def starts_with_magic(self, offset: int) -> bool:
        return offset <= self.num_bytes - len(MAGIC) and self.read(offset, len(MAGIC)) == MAGIC


def _find_at(file: _File, offset: int) -> FoundRecord | LostRange:
    try:
        return _read_record(file, offset)
    except _Damaged as damage:
        return LostRange(offset, _find_next_record(file, offset + len(MAGIC)), str(damage))


def _find_next_record(file: _File, offset: int) -> int:
    for start, block in file.blocks(offset, file.num_bytes):
        for position in _aligned_magics(block):
            if _is_record(file, start + position):
                return start + position
    return file.num_bytes


def _is_record(file: _File, offset: int) -> bool:
    try:
        _read_record(file, offset)
    except _Damaged:
        return False
    return True


def _read_record(file: _File, offset: int) -> FoundRecord:
    payload, end = _read_payload(file, offset)
    if not _holds_image_head(payload, len(payload)):
        raise _Damaged(f"byte {offset:,}: a record of {len(payload):,} bytes that is no image record")
    _require_end(file, offset, end, payload)
    return FoundRecord(offset, end, payload)


def _read_payload(file: _File, offset: int) -> tuple[bytes, int]:
    pieces: list[bytes] = []
    length = 0
    while True:
        flag, num_bytes = _read_part_head(file, offset, _CONTINUES if pieces else _STARTS)
        length += num_bytes + (len(MAGIC) if pieces else 0)
        if length > MAX_RECORD_BYTES:
            raise _Damaged(f"byte {offset:,}: a record of more than {MAX_RECORD_BYTES:,} bytes")
        pieces.append(_read_part(file, offset, num_bytes))
        offset += _PART_HEAD.size + _padded(num_bytes)
        if flag in (_WHOLE, _LAST):
            return MAGIC.join(pieces), offset


def _read_part_head(file: _File, offset: int, allowed: tuple[int, int]) -> tuple[int, int]:
    """(flag, number of bytes) of the part, which lies within the file."""
    head = file.read(offset, _PART_HEAD.size)
    if not MAGIC.startswith(head[:4]):
        raise _Damaged(f"byte {offset:,}: {head[:4].hex()} where RecordIO's magic {MAGIC.hex()} is expected")
    if len(head) < _PART_HEAD.size:
        raise _Damaged(f"byte {offset:,}: record cut short in its head")
    flag, length = _split_flag(head)
    if flag not in allowed:
        raise _Damaged(f"byte {offset:,}: part flag {flag}, expected {allowed[0]} or {allowed[1]}")
    left = file.num_bytes - offset - _PART_HEAD.size
    if _padded(length) > left:
        raise _Damaged(f"byte {offset:,}: record cut short: {_padded(length):,} bytes expected, {left:,} left")
    return flag, length


def _read_part(file: _File, offset: int, num_bytes: int) -> bytes:
    start = offset + _PART_HEAD.size
    blocks = []
    for position, block in file.blocks(start, start + _padded(num_bytes)):
        # Looked for while reading, so that a false length costs a block and not half a gigabyte.
        if (inside := next(_aligned_magics(block), None)) is not None:
            raise _Damaged(
                f"byte {offset:,}: a part of {num_bytes:,} bytes, but another's head at byte {position + inside:,}"
            )
        blocks.append(block)
    data = b"".join(blocks)
    if any(data[num_bytes:]):
        raise _Damaged(
            f"byte {offset:,}: a part of {num_bytes:,} bytes, padded with {data[num_bytes:].hex()}, not zeros"
        )
    return data[:num_bytes]


def _require_end(file: _File, offset: int, end: int, payload: bytes) -> None:
    """What stands behind a record tells whether its length and flag are right.

    Where that is no good head itself, the neighbour may be the damaged one: the record is good if its image ends as it
    should, or if the neighbour is a record but for its magic or its flag.
    """
    head = file.read(end, _PART_HEAD.size + _IMAGE_HEAD_BYTES)
    if MAGIC.startswith(head[:4]) and (len(head) < _PART_HEAD.size or _split_flag(head)[0] not in _CONTINUES):
        return
    if not (payload.endswith(_IMAGE_ENDS) or _is_damaged_neighbour(file, end, head)):
        raise _Damaged(
            f"byte {offset:,}: a record of {len(payload):,} bytes, behind which, at {end:,}, "
            f"{head[:8].hex()} is no other record's head"
        )


def _is_damaged_neighbour(file: _File, offset: int, head: bytes) -> bool:
    if len(head) < _PART_HEAD.size:
        return False
    _, length = _split_flag(head)
    end = offset + _PART_HEAD.size + _padded(length)
    leads_on = end == file.num_bytes or file.starts_with_magic(end)
    return (head[:4] == MAGIC or leads_on) and _holds_image_head(head[_PART_HEAD.size :], length)


def _holds_image_head(payload: bytes, length: int) -> bool:
    """Whether the head and the labels that it claims fit into `length` bytes, of which `payload` has the first."""
    if min(len(payload), length) < _IMAGE_HEAD_BYTES:
        return False
    num_labels = int.from_bytes(payload[:4], "little")
    return num_labels <= min(_MAX_LABELS, (length - _IMAGE_HEAD_BYTES) // 4)


def _aligned_magics(block: bytes) -> Iterator[int]:
    found = block.find(MAGIC)
    while found != -1:
        if found % 4 == 0:
            yield found
        found = block.find(MAGIC, found + 1)


def _split_flag(head: bytes) -> tuple[int, int]:
    _, length_and_flag = _PART_HEAD.unpack_from(head)
    return length_and_flag >> 29, length_and_flag & MAX_RECORD_BYTES


def _padded(num_bytes: int) -> int:
    return -(-num_bytes // 4) * 4
