"""A JPEG's marker segments: what decides whether its bytes can be kept, what in it is metadata, and where it ends.

Source: ITU-T T.81 annex B (https://www.w3.org/Graphics/JPEG/itu-t81.pdf); APP14: Adobe TN 5116, §18.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_HUFFMAN_FRAMES = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended, progressive
_PROGRESSIVE_FRAMES = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
# A byte a component, horizontal and vertical: whole, half or quarter chroma, also as multiples of themselves. TurboJPEG
# has no name for any other, and a decoder that asks it for one refuses the image.
_USUAL_SAMPLINGS = frozenset(
    bytes([luma, chroma, chroma])
    for chroma, lumas in {0x11: (0x11, 0x21, 0x12, 0x22, 0x41, 0x14), 0x21: (0x21, 0x22), 0x12: (0x12, 0x22)}.items()
    for luma in lumas
)
_START_OF_SCAN, _END_OF_IMAGE, _TEMPORARY = 0xDA, 0xD9, 0x01
_APP0, _APP1, _APP14, _APP15, _COMMENT = 0xE0, 0xE1, 0xEE, 0xEF, 0xFE
# What may stand between scans: tables, a number of lines, a restart interval, application data, a comment.
_BETWEEN_SCANS = frozenset({0xC4, 0xCC, 0xDB, 0xDC, 0xDD, *range(_APP0, _APP15 + 1), _COMMENT})

FindMarker = Callable[[bytes, int], int | None]
"""Gives the place of the first marker that is not part of entropy-coded data, at or behind a position."""


class JpegFault(Exception):
    """The text is a reason to be counted by."""


class JpegCutShort(JpegFault):
    """The bytes end before the image does."""


@dataclass(frozen=True, slots=True)
class JpegStructure:
    """The header up to the first scan. `metadata` are the (start, stop) of segments that no decoder needs."""

    width: int
    height: int
    num_components: int
    has_multiple_scans: bool
    """Progressive, or components in scans of their own: decoding holds the coefficients of the whole image."""
    is_plain: bool
    """8-bit, Huffman-coded and with usual sampling, as every decoder takes it."""
    has_exif: bool
    is_adobe_rgb: bool
    metadata: tuple[tuple[int, int], ...]
    first_scan: int


def read_structure(jpeg: bytes) -> JpegStructure:
    """Raises JpegFault where the segments do not lead to a scan."""
    frame: tuple[int, int, int, int, int, bytes] | None = None
    has_exif = is_adobe_rgb = False
    metadata: list[tuple[int, int]] = []
    position = 2
    while True:
        marker, position, stop = _read_segment(jpeg, position)
        if marker == _START_OF_SCAN:
            break
        if marker in _START_OF_FRAME:
            frame = marker, *_read_frame(jpeg, position)
        elif marker == _APP14:
            is_adobe_rgb = jpeg[position + 4 : position + 9] == b"Adobe" and jpeg[stop - 1 : stop] == b"\0"
        elif _is_metadata(marker, jpeg, position):
            metadata.append((position, stop))
            has_exif = has_exif or marker == _APP1
        position = stop
    if frame is None:
        raise JpegFault("JPEG damaged")
    kind, precision, height, width, num_components, sampling = frame
    num_in_scan = int.from_bytes(jpeg[position + 4 : position + 5], "big")
    return JpegStructure(
        width,
        height,
        num_components,
        has_multiple_scans=kind in _PROGRESSIVE_FRAMES or num_in_scan < num_components,
        is_plain=(kind in _HUFFMAN_FRAMES and precision == 8 and (num_components != 3 or sampling in _USUAL_SAMPLINGS)),
        has_exif=has_exif,
        is_adobe_rgb=is_adobe_rgb and num_components == 3,
        metadata=tuple(metadata),
        first_scan=position,
    )


def find_end(jpeg: bytes, first_scan: int, find_marker: FindMarker) -> int:
    """The position behind the end marker, found through all scans. Raises JpegFault where there is none."""
    position = first_scan
    while True:
        _, _, position = _read_segment(jpeg, position)
        marker_at = find_marker(jpeg, position)
        if marker_at is None:
            raise JpegCutShort("JPEG cut short")
        marker = jpeg[marker_at + 1]
        if marker == _END_OF_IMAGE:
            return marker_at + 2
        if marker != _START_OF_SCAN and marker not in _BETWEEN_SCANS:
            raise JpegFault("JPEG damaged")
        position = marker_at


def _read_segment(jpeg: bytes, position: int) -> tuple[int, int, int]:
    """(marker, where its 0xFF stands, where the segment stops), past fill bytes."""
    while True:
        head = jpeg[position : position + 4]
        if len(head) < 4:
            raise JpegCutShort("JPEG cut short")
        if head[0] != 0xFF or head[1] == 0:
            raise JpegFault("JPEG damaged")
        if head[1] == 0xFF:
            position += 1
        elif head[1] == _TEMPORARY or 0xD0 <= head[1] <= 0xD9:
            raise JpegFault("JPEG damaged")
        else:
            break
    stop = position + 2 + int.from_bytes(head[2:], "big")
    if stop > len(jpeg):
        raise JpegCutShort("JPEG cut short")
    return head[1], position, stop


def _read_frame(jpeg: bytes, position: int) -> tuple[int, int, int, int, bytes]:
    """(bits a sample, height, width, number of components, sampling factors of the first three)."""
    body = jpeg[position + 4 : position + 19]
    if len(body) < 6:
        raise JpegFault("JPEG damaged")
    return body[0], int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big"), body[5], body[7::3]


def _is_metadata(marker: int, jpeg: bytes, position: int) -> bool:
    """All application data and comments, but JFIF's head, which tells the colours."""
    if marker == _APP0:
        return jpeg[position + 4 : position + 9] != b"JFIF\0"
    return _APP0 < marker <= _APP15 or marker == _COMMENT
