"""How labels, names and images are written for people: one short text each, whatever they hold."""

from __future__ import annotations

import struct
from os import PathLike, fspath

from imagenet_ops.domain.image_header import ImageHeader, NotAnImage, read_image_header


def format_label(label: float) -> str:
    """As few digits as tell it from any other float32: `3`, `0.1`, `1e+09`, `nan`, `-inf`; a zero has no sign."""
    label += 0.0
    short = f"{label:.7g}"
    return short if _as_float32(float(short)) == _as_float32(label) else f"{label:.9g}"


def format_count(count: int, noun: str) -> str:
    """`1 record`, `1,234 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_name(path: PathLike[str]) -> str:
    """A name on one line: what can't be printed, such as a line feed or a byte that is no UTF-8, is escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in fspath(path))


def find_header(image: bytes) -> ImageHeader | str:
    """Format and size of an image, or in a few words why it has none."""
    try:
        return read_image_header(lambda offset, num_bytes: image[offset : offset + num_bytes])
    except NotAnImage as reason:
        return str(reason)


def _as_float32(number: float) -> bytes:
    return struct.pack("<f", number)
