"""Tiny data made in code: pictures, JPEGs, PNGs and tars of every flavour."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Mapping
from typing import Literal

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

TarFormat = Literal["ustar", "gnu", "pax"]
_TAR_FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def picture(width: int, height: int, seed: int = 0, channels: int = 3) -> NDArray[np.uint8]:
    """Smooth colours, no two corners alike, so that a turned picture is seen; the seed decides all of it."""
    corners = np.random.default_rng(seed).integers(0, 256, (4, 4, channels), dtype=np.uint8)
    return cv2.resize(corners, (width, height), interpolation=cv2.INTER_LINEAR).reshape(height, width, channels)


def jpeg(
    width: int,
    height: int,
    seed: int = 0,
    quality: int = 90,
    mode: Literal["RGB", "L", "CMYK"] = "RGB",
    orientation: int | None = None,
    byte_order: Literal["MM", "II"] = "MM",
) -> bytes:
    """A whole JPEG; `orientation` writes a camera's Exif segment into it."""
    pixels = picture(width, height, seed, {"RGB": 3, "L": 1, "CMYK": 4}[mode])
    data = simplejpeg.encode_jpeg(pixels, quality, {"RGB": "RGB", "L": "GRAY", "CMYK": "CMYK"}[mode], "444")
    return data if orientation is None else data[:2] + exif_segment(orientation, byte_order) + data[2:]


def exif_segment(orientation: int, byte_order: Literal["MM", "II"] = "MM") -> bytes:
    """APP1 with one directory of two entries, of which the second is the orientation."""
    order = {"MM": ">", "II": "<"}[byte_order]
    tiff = byte_order.encode() + struct.pack(order + "HI", 42, 8)
    tiff += struct.pack(order + "H", 2)
    tiff += struct.pack(order + "HHII", 0x0100, 4, 1, 640)  # the width, as a decoy
    tiff += struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    tiff += struct.pack(order + "I", 0)
    body = b"Exif\0\0" + tiff
    return b"\xff\xe1" + struct.pack(">H", 2 + len(body)) + body


def png(
    width: int, height: int, seed: int = 0, mode: Literal["RGB", "L", "RGBA", "P", "RGB16", "L16"] = "RGB"
) -> bytes:
    """A whole PNG; `P` has a palette of 16 colours, the two with 16 have 16 bits a channel."""
    if mode == "P":
        palette = np.random.default_rng(seed).integers(0, 256, (16, 3), dtype=np.uint8)
        indices = (picture(width, height, seed, 1) >> 4).astype(np.uint8)
        return png_of_rows(indices.reshape(height, width), 3, 8, palette.tobytes())
    pixels = picture(width, height, seed, {"RGB": 3, "L": 1, "RGBA": 4, "RGB16": 3, "L16": 1}[mode])
    color_type = {"RGB": 2, "L": 0, "RGBA": 6, "RGB16": 2, "L16": 0}[mode]
    rows = pixels.reshape(height, -1)
    if mode.endswith("16"):
        return png_of_rows((rows.astype(">u2") * 257).view(np.uint8), color_type, 16)
    return png_of_rows(rows, color_type, 8, width=width)


def png_of_rows(
    rows: NDArray[np.uint8], color_type: int, bit_depth: int, palette: bytes = b"", width: int | None = None
) -> bytes:
    """A PNG of unfiltered rows; the width follows from the rows unless it is given."""
    height = len(rows)
    row_channels = {0: 1, 2: 3, 3: 1, 6: 4}[color_type] * bit_depth // 8
    header = struct.pack(">IIBBBBB", width or rows.shape[1] // row_channels, height, bit_depth, color_type, 0, 0, 0)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()
    chunks = [(b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(raw, 1)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(kind, body) for kind, body in chunks if body or kind == b"IEND")


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def tar(members: Mapping[str, bytes], tar_format: TarFormat = "ustar") -> bytes:
    """A tar of files, in the order of `members`, without times or owners."""
    return tar_of(*[(tar_member(name, len(data)), data) for name, data in members.items()], tar_format=tar_format)


def class_tars(classes: Mapping[str, Mapping[str, bytes]]) -> bytes:
    """A tar of one tar a class: {synset: {name: bytes}}, as ImageNet's archives are."""
    return tar({f"{synset}.tar": tar(members) for synset, members in classes.items()})


def class_folders(classes: Mapping[str, Mapping[str, bytes]]) -> bytes:
    """A tar of one folder a class: {synset: {name: bytes}}."""
    return tar({f"{synset}/{name}": data for synset, members in classes.items() for name, data in members.items()})


def tar_member(name: str, num_bytes: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = num_bytes, kind, link
    return info


def tar_of(*members: tuple[tarfile.TarInfo, bytes], tar_format: TarFormat = "ustar") -> bytes:
    """A tar of any members, with only the two zero blocks at its end that the format asks for."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=_TAR_FORMATS[tar_format]) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
        end = archive.offset
    return buffer.getvalue()[:end] + bytes(1024)


def tar_header(
    name: bytes,
    size: bytes = b"00000000000\0",
    kind: bytes = b"0",
    magic: bytes = b"ustar\x0000",
    prefix: bytes = b"",
    signed_checksum: bool = False,
) -> bytes:
    """One header block with whatever bytes are given and a checksum that fits them."""
    header = bytearray(512)
    for offset, field in ((0, name), (100, b"0000644\0"), (124, size), (156, kind), (257, magic), (345, prefix)):
        header[offset : offset + len(field)] = field
    header[148:156] = b" " * 8
    total = sum(header) - (256 * sum(byte > 127 for byte in header) if signed_checksum else 0)
    header[148:156] = b"%06o\0 " % total
    return bytes(header)


def padded(data: bytes) -> bytes:
    """`data` with zeros up to a multiple of a tar's 512-byte blocks."""
    return data + bytes(-len(data) % 512)
