"""One image of every odd kind that archives hold, by what it is."""

from __future__ import annotations

import base64
import io

from PIL import Image

from tests.builders import exif_segment, jpeg, picture, png

# 24 × 16 pixels by libjpeg-turbo's `cjpeg -arithmetic`: no encoder among the tests' libraries writes it.
_ARITHMETIC = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMUFRUVDA8X"
    "GBYUGBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBT/yQAR"
    "CAAQABgDASIAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwDSy6dCxWfstW7mKtdCnxS6rSa27WJRmOPG3Z44DCMU3Q+59q5CN2Kd"
    "3dDq0pqI31EZ4f8AOJcysPKIgqEU4X7hCuY9UKTlBLUqfXHieICOZTC71a/oj23dkK9yYWbCMIk5emrvh8PbACVcaFs8FHkJE9R0kcc+MS+M"
    "VXSfXw7XB9/n3KbVWm382+F0RbeHyuD/2Q=="
)


def odd_images() -> dict[str, bytes]:
    """In the order of the table in docs/odd_images.md; what has no size in its name has 120 × 80 pixels."""
    whole, small = jpeg(120, 80), jpeg(60, 40)
    grey = jpeg(120, 80, mode="L")
    turned = {f"JPEG, orientation {tag}": jpeg(120, 80, orientation=tag) for tag in range(1, 9)}
    return {
        "JPEG, colour": whole,
        "JPEG, grey": grey,
        "JPEG, CMYK": jpeg(120, 80, mode="CMYK"),
        "JPEG, YCCK with Adobe's inversion": _saved("CMYK", "JPEG"),
        "JPEG, progressive": _saved("RGB", "JPEG", progressive=True),
        "JPEG, arithmetic coding, 24 × 16": _ARITHMETIC,
        "JPEG, 12 bits a sample": _with_frame(whole, 2 + 2, b"\x0c"),
        **turned,
        "JPEG, ICC profile": whole[:2] + b"\xff\xe2\x02\x0eICC_PROFILE\0\1\1" + bytes(510) + whole[2:],
        "JPEG, Exif and comment": whole[:2] + exif_segment(1) + b"\xff\xfe\x00\x07Hello" + whole[2:],
        "JPEG, a second image behind it": whole + jpeg(60, 40),
        "JPEG, zeros behind it": whole + bytes(500),
        "JPEG, last 2 bytes missing": whole[:-2],
        "JPEG, second half missing": whole[: len(whole) // 2],
        "JPEG, cut in its header": whole[:60],
        "JPEG, 8 bytes flipped": _flipped(whole),
        "JPEG, claims 65,000 × 65,000": _with_frame(whole, 3 + 2, b"\xfd\xe8\xfd\xe8"),
        "JPEG, 60 × 40": small,
        "JPEG, 60 × 40, progressive": _saved("RGB", "JPEG", size=(60, 40), progressive=True),
        "JPEG, 60 × 40, orientation 6": jpeg(60, 40, orientation=6),
        "JPEG, 60 × 40, comment and a second image": small[:2] + b"\xff\xfe\x00\x07Hello" + small[2:] + whole,
        "JPEG, 1 × 1": jpeg(1, 1),
        "JPEG, 1 × 2000": jpeg(1, 2000),
        "JPEG, 6000 × 20": jpeg(6000, 20),
        "JPEG, 3 × 1000": jpeg(3, 1000),
        "PNG, colour": png(120, 80),
        "PNG, grey": png(120, 80, mode="L"),
        "PNG, grey with alpha": _saved("LA", "PNG"),
        "PNG, colour with alpha": png(120, 80, mode="RGBA"),
        "PNG, palette": png(120, 80, mode="P"),
        "PNG, 16 bits": png(120, 80, mode="RGB16"),
        "PNG, 16 bits, grey": png(120, 80, mode="L16"),
        "PNG, second half missing": (lambda data: data[: len(data) // 2])(png(120, 80)),
        "PNG, 1 byte flipped": (lambda data: data[:60] + bytes([data[60] ^ 0xFF]) + data[61:])(png(120, 80)),
        "GIF named .JPEG": _saved("P", "GIF"),
        "WebP named .JPEG": _saved("RGB", "WEBP"),
        "BMP named .JPEG": _saved("RGB", "BMP"),
        "TIFF named .JPEG": _saved("RGB", "TIFF"),
        "AppleDouble file": b"\0\5\x16\7\0\2\0\0Mac OS X" + bytes(200),
        "HTML page": b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
        "nothing": b"",
    }


def _saved(mode: str, kind: str, size: tuple[int, int] = (120, 80), **options: object) -> bytes:
    channels = {"L": 1, "LA": 2, "P": 3, "RGB": 3, "CMYK": 4}[mode]
    pixels = picture(*size, 3, channels)
    image = Image.fromarray(pixels if channels > 1 else pixels[:, :, 0], "RGB" if mode == "P" else mode)
    if mode == "P":
        image = image.quantize(16)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _with_frame(data: bytes, offset: int, value: bytes) -> bytes:
    """Other bytes at `offset` of the frame header."""
    at = data.index(b"\xff\xc0") + offset
    return data[:at] + value + data[at + len(value) :]


def _flipped(data: bytes) -> bytes:
    damaged = bytearray(data)
    start = data.index(b"\xff\xda") + 14
    for step in range(8):
        damaged[start + 40 * step] ^= 0xFF
    return bytes(damaged)
