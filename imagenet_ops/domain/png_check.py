"""Whether a PNG is whole: its chunks follow each other to the end, and each has its checksum.

Source: https://www.w3.org/TR/png/ §5.3: length u32 · type 4 · bytes · CRC-32 of type and bytes; big-endian.
"""

from __future__ import annotations

import zlib


def find_png_fault(data: bytes) -> str | None:
    """`cut short`, `damaged`, or None for a whole file; bytes behind the end chunk do not matter."""
    position = 8
    while True:
        head = data[position : position + 8]
        length = int.from_bytes(head[:4], "big")
        end = position + 12 + length
        if len(head) < 8 or end > len(data):
            return "cut short"
        if zlib.crc32(data[position + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            return "damaged"
        if head[4:] == b"IEND":
            return None
        position = end
