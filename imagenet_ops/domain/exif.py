"""The orientation that a camera wrote into a JPEG or PNG.

Source: Exif 2.32 (CIPA DC-008) §4.6.4 tag 0x0112, in a TIFF. In a JPEG it lies in an APP1 segment behind
`Exif\\0\\0`, in a PNG in an eXIf chunk (https://www.w3.org/TR/png/ §11.3.4.5).
"""

from __future__ import annotations

import struct

_ORIENTATION_TAG = 0x0112
_APP1, _START_OF_SCAN = 0xE1, 0xDA


def read_orientation(jpeg: bytes) -> int:
    """1 to 8; 1, as stored, where there is no readable Exif segment."""
    position = 2
    while position + 4 <= len(jpeg) and jpeg[position] == 0xFF and jpeg[position + 1] != _START_OF_SCAN:
        if jpeg[position + 1] == 0xFF:  # a fill byte
            position += 1
            continue
        length = int.from_bytes(jpeg[position + 2 : position + 4], "big")
        body = jpeg[position + 4 : position + 2 + length]
        if jpeg[position + 1] == _APP1 and body.startswith(b"Exif\0\0"):
            return _orientation_in_tiff(body[6:])
        position += 2 + max(length, 2)
    return 1


def read_png_orientation(png: bytes) -> int:
    """1 to 8; 1, as stored, where there is no readable eXIf chunk before the pixels."""
    position = 8
    while (kind := png[position + 4 : position + 8]) not in (b"IDAT", b"IEND", b""):
        length = int.from_bytes(png[position : position + 4], "big")
        if kind == b"eXIf":
            return _orientation_in_tiff(png[position + 8 : position + 8 + length])
        position += 12 + length
    return 1


def _orientation_in_tiff(tiff: bytes) -> int:
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        (first_entry,) = struct.unpack_from(order + "I", tiff, 4)
        (num_entries,) = struct.unpack_from(order + "H", tiff, first_entry)
        for index in range(num_entries):
            tag, _, _, value = struct.unpack_from(order + "HHIH", tiff, first_entry + 2 + 12 * index)
            if tag == _ORIENTATION_TAG:
                return value if 1 <= value <= 8 else 1
    except struct.error:
        pass  # a directory that points outside: no orientation to be had
    return 1
