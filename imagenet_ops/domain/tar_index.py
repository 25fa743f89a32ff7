"""Where each member of a tar lies, without unpacking it.

Formats: POSIX.1-1988 `ustar`, GNU tar and POSIX.1-2001 pax (https://www.gnu.org/software/tar/manual/html_node/Standard.html).
A tar is a row of 512-byte blocks: a header, the member's bytes padded to a block, and so on, then two zero blocks.

    offset  0 name 100 · 124 size 12 (octal, or base-256 when its top bit is set) · 148 checksum 8 · 156 type 1
            257 magic 6 · 345 prefix 155
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from imagenet_ops.errors import DataError

BLOCK_BYTES = 512
_PIECE_BYTES = 2**20
_MAX_EXTENSION_BYTES = 2**20  # a pax or long-name record beyond this is an attack, not a name
_MAX_SIZE = 2**63 - 1  # the largest file of any system
_KINDS = {b"0": "file", b"\0": "file", b"7": "file", b"5": "folder", b"1": "hard link", b"2": "symbolic link"}
_KINDS |= {b"3": "device", b"4": "device", b"6": "pipe"}
_WITHOUT_BYTES = frozenset({b"1", b"2", b"3", b"4", b"5", b"6"})
_EXTENSIONS = frozenset(
    {b"x", b"g", b"L", b"K"}
)  # records about the next member: pax, pax for all, GNU long name, link

ReadAt = Callable[[int, int], bytes]
"""(offset, num_bytes) → up to that many bytes; fewer only at the end."""


@dataclass(frozen=True)
class TarMember:
    """One member; `offset` is where its bytes start, `kind` is `file` or says what else it is.

    A name that is not UTF-8 shows its odd bytes as `\\xff`.
    """

    name: str
    offset: int
    num_bytes: int
    kind: str


def is_tar(head: bytes) -> bool:
    """Whether `head`, the first 512 bytes, is a tar header; an empty tar has a zero block there."""
    if len(head) < BLOCK_BYTES:
        return False
    block = head[:BLOCK_BYTES]
    return not any(block) or _has_valid_checksum(block)


def iterate_members(read_at: ReadAt, offset: int, num_bytes: int, archive: str) -> Iterator[TarMember]:
    """The members of the tar in `num_bytes` bytes from `offset`, in their order; offsets are of `read_at`.

    Raises DataError, naming `archive` and the position, for a tar that is cut short or has a damaged header.
    """
    position, end = offset, offset + num_bytes
    extension: dict[str, str] = {}
    while True:
        header = read_at(position, min(BLOCK_BYTES, end - position)) if position < end else b""
        if len(header) < BLOCK_BYTES:
            raise _cut_short(archive, position - offset, "a member's header or the two zero blocks of the end")
        if not any(header):
            _require_zeros(read_at, position, end, archive, position - offset)
            return
        if not _has_valid_checksum(header):
            raise DataError(f"{archive}: byte {position - offset:,}: not a tar header (its checksum is wrong)")
        size = _number(header[124:136], archive, position - offset)
        kind = header[156:157]
        body = position + BLOCK_BYTES
        if kind == b"S":
            raise DataError(
                f"{archive}: byte {position - offset:,}: a GNU sparse member; write the archive without --sparse"
            )
        if kind in _EXTENSIONS:
            if body + size > end or size > _MAX_EXTENSION_BYTES:
                raise _cut_short(archive, body - offset, f"a name record of {size:,} bytes")
            if kind != b"g":
                extension |= _read_extension(kind, read_at(body, size), archive)
        else:
            name = extension.get("path", _name(header))
            if kind == b"\0" and name.endswith("/"):
                kind = b"5"  # how tars before POSIX mark a folder
            if "size" in extension:
                size = _pax_size(extension["size"], archive, position - offset)
            if body + size > end and _KINDS.get(kind, "file") == "file":
                raise _cut_short(archive, body - offset, f"{size:,} bytes of {name}")
            yield TarMember(name, body, size, _kind(kind, extension))
            extension = {}
        position = body + (0 if kind in _WITHOUT_BYTES else _blocks(size))


def _require_zeros(read_at: ReadAt, position: int, end: int, archive: str, end_of_members: int) -> None:
    """What follows the last member must be zeros: anything else is damage, or a second tar appended to the first."""
    while position < end:
        piece = read_at(position, min(_PIECE_BYTES, end - position))
        if not piece or any(piece):
            raise DataError(f"{archive}: the tar ends at byte {end_of_members:,}, but what follows is not empty")
        position += len(piece)


def _blocks(num_bytes: int) -> int:
    return -(-num_bytes // BLOCK_BYTES) * BLOCK_BYTES


def _kind(kind: bytes, extension: dict[str, str]) -> str:
    if any(key.startswith("GNU.sparse.") for key in extension):
        return "sparse file"
    return _KINDS.get(kind, "file")


def _has_valid_checksum(block: bytes) -> bool:
    """The sum of all bytes, the checksum's own eight counted as blanks; old tars summed signed bytes."""
    try:
        expected = int(block[148:156].strip(b" \0") or b"-1", 8)
    except ValueError:
        return False
    unsigned = sum(block) - sum(block[148:156]) + 8 * 32
    return unsigned == expected or unsigned - 256 * _count_above_127(block) == expected


def _count_above_127(block: bytes) -> int:
    return sum(byte > 127 for byte in block[:148] + block[156:])


def _number(field: bytes, archive: str, position: int) -> int:
    """A size of 0 to 2^63 - 1: a negative one would send the reader back to where it was, for ever."""
    digits = field.strip(b" \0") or b"0"
    if field[0] & 0x80:
        size = int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    elif digits.strip(b"01234567"):
        size = -1
    else:
        size = int(digits, 8)
    if not 0 <= size <= _MAX_SIZE:
        raise DataError(f"{archive}: byte {position:,}: a size of {field!r} in a tar header")
    return size


def _pax_size(text: str, archive: str, position: int) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MAX_SIZE):
        raise DataError(f"{archive}: byte {position:,}: a size of {text!r} in a pax record")
    return int(text)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _name(header: bytes) -> str:
    name, prefix = header[:100].split(b"\0")[0], b""
    if header[257:263] == b"ustar\0":  # GNU's own magic has other fields where the prefix would be
        prefix = header[345:500].split(b"\0")[0]
    return _text(prefix + b"/" + name if prefix else name)


def _read_extension(kind: bytes, body: bytes, archive: str) -> dict[str, str]:
    if kind == b"L":
        return {"path": _text(body.rstrip(b"\0"))}
    return dict(_pax_records(body, archive)) if kind == b"x" else {}


def _pax_records(body: bytes, archive: str) -> Iterator[tuple[str, str]]:
    """Records are `length key=value\\n`, the length of the whole record in decimal."""
    while body.strip(b"\0"):
        length, _, _ = body.partition(b" ")
        num_bytes = int(length) if length.isdigit() and len(length) < 10 else 0
        record = body[len(length) + 1 : num_bytes]
        key, equals, value = record.partition(b"=")
        if num_bytes > len(body) or not (equals and value.endswith(b"\n")):
            raise DataError(f"{archive}: a damaged pax record: {body[:40]!r}")
        yield _text(key), _text(value[:-1])
        body = body[num_bytes:]


def _cut_short(archive: str, position: int, expected: str) -> DataError:
    return DataError(f"{archive}: cut short: expected {expected} at byte {position:,}")
