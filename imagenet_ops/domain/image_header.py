"""What an image is, told from its first bytes: format and size, without decoding a pixel.

JPEG markers: ITU-T T.81 table B.1 (https://www.w3.org/Graphics/JPEG/itu-t81.pdf). PNG: https://www.w3.org/TR/png/ §5,
§11.2.1.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

MAX_PIXELS = 2**28  # a decoded image of 800 MB; beyond it, a bomb

_PNG = b"\x89PNG\r\n\x1a\n"
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_END_OF_IMAGE, _START_OF_SCAN = 0xD9, 0xDA
# Other formats by their first bytes, so that the reason for leaving a member out says what it is.
_OTHERS = {
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"%PDF": "PDF",
    b"\x1f\x8b": "gzip",
    b"PK\3\4": "zip",
    b"\0\5\x16\7": "AppleDouble file",
}


@dataclass(frozen=True)
class ImageHeader:
    """Size in pixels as stored, before any orientation is applied."""

    format: Literal["jpeg", "png"]
    width: int
    height: int


class NotAnImage(Exception):
    """The bytes are no JPEG or PNG; the text is the reason, short enough to be counted by."""


def read_image_header(read_at: Callable[[int, int], bytes]) -> ImageHeader:
    """Format and size; `read_at(offset, num_bytes)` gives fewer bytes only at the member's end. Raises NotAnImage."""
    head = read_at(0, 512)
    if head[:8] == _PNG:
        header = _read_png(head)
    elif head[:3] == b"\xff\xd8\xff":
        header = _read_jpeg(read_at)
    else:
        raise NotAnImage(_describe(head))
    if not (header.width and header.height):
        raise NotAnImage(f"{header.format.upper()} without a size")
    if header.width * header.height > MAX_PIXELS:
        raise NotAnImage(f"more than {MAX_PIXELS:,} pixels")
    return header


def _read_png(head: bytes) -> ImageHeader:
    if len(head) < 33 or head[12:16] != b"IHDR":
        raise NotAnImage("PNG cut in its header")
    return ImageHeader("png", *struct.unpack(">II", head[16:24]))


def _read_jpeg(read_at: Callable[[int, int], bytes]) -> ImageHeader:
    position = 2
    while True:
        segment = read_at(position, 9)
        if len(segment) < 2 or segment[0] != 0xFF:
            raise NotAnImage("JPEG cut or damaged in its header")
        marker = segment[1]
        if marker == 0xFF:  # fill byte
            position += 1
        elif marker in _WITHOUT_LENGTH:
            position += 2
        elif marker in (_END_OF_IMAGE, _START_OF_SCAN) or len(segment) < 9:
            raise NotAnImage("JPEG cut or damaged in its header")
        elif marker in _START_OF_FRAME:
            height, width = struct.unpack(">HH", segment[5:9])
            return ImageHeader("jpeg", width, height)
        else:
            position += 2 + int.from_bytes(segment[2:4], "big")


def _describe(head: bytes) -> str:
    if not head:
        return "empty"
    for start, name in _OTHERS.items():
        if head.startswith(start):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    return "text" if _is_text(head) else "unknown content"


def _is_text(head: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)  # its last letter may go on behind `head`
    except UnicodeDecodeError:
        return False
    return all(char.isprintable() or char.isspace() for char in text)
