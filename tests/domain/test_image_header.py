from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from imagenet_ops.domain.image_header import ImageHeader, NotAnImage, read_image_header
from tests.builders import exif_segment, jpeg, png, png_chunk, tar


def reader_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, num_bytes: data[offset : offset + num_bytes]


def header_of(data: bytes) -> ImageHeader:
    return read_image_header(reader_of(data))


def reason_of(data: bytes) -> str:
    with pytest.raises(NotAnImage) as caught:
        header_of(data)
    return str(caught.value)


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", 2 + len(body)) + body


def frame(width: int, height: int, marker: int = 0xC0) -> bytes:
    return segment(marker, struct.pack(">BHHB", 8, height, width, 0))


def png_head(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_jpeg_of_any_colours_tells_its_size(mode: str) -> None:
    assert header_of(jpeg(31, 17, mode=mode)) == ImageHeader("jpeg", 31, 17)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "RGB16"])
def test_a_png_of_any_colours_tells_its_size(mode: str) -> None:
    assert header_of(png(31, 17, mode=mode)) == ImageHeader("png", 31, 17)


def test_the_size_is_as_stored_whatever_the_cameras_orientation() -> None:
    assert header_of(jpeg(31, 17, orientation=6)) == ImageHeader("jpeg", 31, 17)


@pytest.mark.parametrize("marker", sorted(set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}))
def test_every_start_of_frame_is_known(marker: int) -> None:
    assert header_of(b"\xff\xd8" + frame(300, 200, marker)) == ImageHeader("jpeg", 300, 200)


@pytest.mark.parametrize("marker", [0xC4, 0xC8, 0xCC, 0xDB, 0xDD, 0xE0, 0xEF, 0xFE])
def test_no_other_segment_is_taken_for_a_frame(marker: int) -> None:
    decoy = segment(marker, struct.pack(">BHHB", 8, 1, 1, 0))
    assert header_of(b"\xff\xd8" + decoy + frame(300, 200)) == ImageHeader("jpeg", 300, 200)


def test_a_thumbnail_inside_a_segment_is_not_the_image() -> None:
    thumbnail = segment(0xE1, b"Exif\0\0" + jpeg(16, 16))
    assert header_of(b"\xff\xd8" + thumbnail + exif_segment(1) + frame(300, 200)) == ImageHeader("jpeg", 300, 200)


def test_a_frame_behind_many_long_segments_is_found() -> None:
    profile = segment(0xE2, bytes(65_000)) * 20
    assert header_of(b"\xff\xd8" + profile + frame(300, 200)) == ImageHeader("jpeg", 300, 200)


def test_fill_bytes_and_markers_without_length_are_passed_over() -> None:
    assert header_of(b"\xff\xd8" + b"\xff\xff\xff\x01" + b"\xff\xff" + frame(300, 200)) == ImageHeader("jpeg", 300, 200)


REASONS = {
    "nothing": (b"", "empty"),
    "a GIF": (b"GIF89a" + bytes(20), "GIF"),
    "a BMP": (b"BM" + bytes(20), "BMP"),
    "a little-endian TIFF": (b"II*\0" + bytes(20), "TIFF"),
    "a big-endian TIFF": (b"MM\0*" + bytes(20), "TIFF"),
    "a PDF": (b"%PDF-1.7\n", "PDF"),
    "a gzip": (b"\x1f\x8b\x08" + bytes(20), "gzip"),
    "a zip": (b"PK\3\4" + bytes(20), "zip"),
    "a Mac's shadow file": (b"\0\5\x16\7" + bytes(20), "AppleDouble file"),
    "a WebP": (b"RIFF\x24\0\0\0WEBPVP8 " + bytes(20), "WebP"),
    "a sound": (b"RIFF\x24\0\0\0WAVEfmt " + bytes(20), "unknown content"),
    "a text": (b"licence: see below\n\tall rights\r\n", "text"),
    "a page": ("<html>Zugriff für Gäste verweigert</html>".encode(), "text"),
    "a long text": (b"word " * 300, "text"),
    "a long text of letters of two bytes": ("ä" * 300, "text"),
    "a long text of letters of three bytes": ("語" * 300, "text"),
    "a long text of letters of four bytes": ("x" + "\U0001d518" * 300, "text"),
    "a short text that ends within a letter": ("Gä".encode()[:-1] + b"\xff", "unknown content"),
    "a tar": (tar({"a": b"x"}), "unknown content"),
    "zeros": (bytes(600), "unknown content"),
    "half of a JPEG's start": (b"\xff\xd8", "unknown content"),
    "a JPEG of its start only": (b"\xff\xd8\xff", "JPEG cut or damaged in its header"),
    "a JPEG without a frame": (b"\xff\xd8" + segment(0xDA, bytes(8)), "JPEG cut or damaged in its header"),
    "a JPEG that ends at once": (b"\xff\xd8\xff\xd9" + bytes(20), "JPEG cut or damaged in its header"),
    "a JPEG with junk for a segment": (b"\xff\xd8\xff\xe0\0\4abjunk", "JPEG cut or damaged in its header"),
    "a JPEG whose segment says it is empty": (b"\xff\xd8\xff\xe0" + bytes(20), "JPEG cut or damaged in its header"),
    "a JPEG of no width": (b"\xff\xd8" + frame(0, 200), "JPEG without a size"),
    "a JPEG of no height": (b"\xff\xd8" + frame(300, 0), "JPEG without a size"),
    "a PNG cut in its header": (png_head(3, 2)[:23], "PNG cut in its header"),
    "a PNG whose first chunk is another": (
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"CgBI", bytes(13)),
        "PNG cut in its header",
    ),
    "a PNG of no width": (png_head(0, 2), "PNG without a size"),
    "a PNG of one pixel too many": (png_head(2**14, 2**14 + 1), "more than 268,435,456 pixels"),
    "a JPEG bomb": (b"\xff\xd8" + frame(65_535, 65_535), "more than 268,435,456 pixels"),
}


@pytest.mark.parametrize(("data", "reason"), REASONS.values(), ids=REASONS.keys())
def test_what_is_no_image_is_told_by_its_kind(data: bytes | str, reason: str) -> None:
    assert reason_of(data.encode() if isinstance(data, str) else data) == reason


def test_the_greatest_size_is_still_an_image() -> None:
    assert header_of(png_head(2**14, 2**14)) == ImageHeader("png", 2**14, 2**14)


@pytest.mark.parametrize(("whole", "format"), [(jpeg(31, 17, orientation=3), "jpeg"), (png(31, 17), "png")])
def test_an_image_cut_anywhere_has_its_true_size_or_none(whole: bytes, format: str) -> None:
    sizes = set()
    for length in range(len(whole)):
        try:
            sizes.add(header_of(whole[:length]))
        except NotAnImage:
            sizes.add(None)
    assert sizes == {None, ImageHeader(format, 31, 17)}


def test_a_jpeg_of_nothing_but_fill_bytes_ends() -> None:
    assert reason_of(b"\xff\xd8" + b"\xff" * 5000) == "JPEG cut or damaged in its header"
