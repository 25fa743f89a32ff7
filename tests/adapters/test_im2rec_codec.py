"""The codec against OpenCV's own way from a file to a file."""

from __future__ import annotations

import struct
from pathlib import Path

import cv2
import numpy as np
import pytest

from imagenet_ops.adapters.im2rec_codec import Im2recCodec
from imagenet_ops.adapters.unusable_image import UnusableImage
from tests.builders import exif_segment, jpeg, picture, png, png_chunk, png_of_rows
from tests.im2rec.photographs import odd_images, photograph, progressive


def with_thumbnail(data: bytes) -> bytes:
    """A JPEG whose Exif segment holds a whole JPEG of its own."""
    body = b"Exif\0\0" + jpeg(16, 16, seed=99)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(body)) + body + data[2:]


def with_png_orientation(data: bytes, orientation: int) -> bytes:
    return data[:33] + png_chunk(b"eXIf", exif_segment(orientation)[10:]) + data[33:]


def of_format(suffix: str) -> bytes:
    return cv2.imencode(suffix, picture(50, 40, seed=5))[1].tobytes()


IMAGES = odd_images() | {
    "photograph.jpg": photograph(133, 97, seed=1),
    "thumbnail.jpg": with_thumbnail(photograph(97, 133, seed=2)),
    "turned.png": with_png_orientation(png(60, 40, seed=3), 6),
    **{f"other{suffix}": of_format(suffix) for suffix in (".bmp", ".tiff", ".webp", ".ppm", ".jp2")},
}


@pytest.mark.parametrize("color", [1, 0, -1])
@pytest.mark.parametrize("name", IMAGES)
def test_pixels_from_bytes_are_those_from_the_file(name: str, color: int, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(IMAGES[name])
    from_file = cv2.imread(str(path), color)
    from_bytes = cv2.imdecode(np.frombuffer(IMAGES[name], np.uint8), color)
    assert from_file.dtype == from_bytes.dtype
    np.testing.assert_array_equal(from_file, from_bytes)


@pytest.mark.parametrize("color", [1, 0, -1])
@pytest.mark.parametrize("encoding", [".jpg", ".png"])
@pytest.mark.parametrize("name", IMAGES)
def test_an_image_becomes_what_opencv_makes_of_its_file(name: str, encoding: str, color: int, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(IMAGES[name])
    pixels = cv2.imread(str(path), color)
    parameter = cv2.IMWRITE_JPEG_QUALITY if encoding == ".jpg" else cv2.IMWRITE_PNG_COMPRESSION
    expected = cv2.imencode(encoding, pixels, [parameter, 7])[1].tobytes()
    assert Im2recCodec(color=color, encoding=encoding, quality=7).transcode(IMAGES[name]).image == expected


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [(100, 60, (83, 50)), (60, 100, (50, 83)), (101, 67, (75, 50)), (50, 50, (50, 50)), (1, 3, (50, 150))],
)
def test_the_short_edge_is_resized_and_the_long_edge_rounded_down(
    width: int, height: int, expected: tuple[int, int]
) -> None:
    image = Im2recCodec(resize=50).transcode(png(width, height)).image
    assert cv2.imdecode(np.frombuffer(image, np.uint8), 1).shape[1::-1] == expected


@pytest.mark.parametrize(
    ("codec", "expected"),
    [
        (Im2recCodec(), ("reencoded", 80, 60)),
        (Im2recCodec(resize=30), ("shrunk", 40, 30)),
        (Im2recCodec(resize=90), ("enlarged", 120, 90)),
        (Im2recCodec(center_crop=True), ("reencoded", 60, 60)),
        (Im2recCodec(pass_through=True, resize=30), ("kept", 80, 60)),
    ],
)
def test_it_is_told_what_became_of_an_image(codec: Im2recCodec, expected: tuple[str, int, int]) -> None:
    stored = codec.transcode(jpeg(80, 60))
    assert (stored.treatment, stored.width, stored.height) == expected


@pytest.mark.parametrize(("width", "height"), [(9, 4), (4, 9), (8, 5), (5, 5), (1, 2)])
def test_the_square_in_the_middle_is_cut_out(width: int, height: int) -> None:
    codec = Im2recCodec(center_crop=True, encoding=".png")
    pixels = picture(width, height, seed=4)
    data = cv2.imencode(".png", pixels)[1].tobytes()
    edge = min(width, height)
    top, left = (height - edge) // 2, (width - edge) // 2
    square = cv2.imdecode(np.frombuffer(codec.transcode(data).image, np.uint8), 1)
    np.testing.assert_array_equal(square, pixels[top : top + edge, left : left + edge])


@pytest.mark.parametrize(
    "whole",
    [photograph(60, 50, seed=6), progressive(60, 50, seed=7), with_thumbnail(photograph(60, 50, seed=8))],
    ids=["baseline", "progressive", "with a thumbnail"],
)
def test_a_jpeg_that_is_cut_anywhere_is_refused(whole: bytes) -> None:
    for length in {*range(0, len(whole), 37), len(whole) - 2, len(whole) - 1}:
        with pytest.raises(UnusableImage):
            Im2recCodec().transcode(whole[:length])
    Im2recCodec().transcode(whole)


@pytest.mark.parametrize("behind", [b"\0", bytes(5000), b"\xff\xda\xff\xda", b"\n", photograph(30, 30, seed=9)[:-2]])
def test_what_follows_a_jpegs_end_does_not_matter(behind: bytes) -> None:
    whole = progressive(60, 50, seed=10)
    assert Im2recCodec().transcode(whole + behind).image == Im2recCodec().transcode(whole).image


def test_fill_bytes_before_a_marker_do_not_matter() -> None:
    whole = photograph(60, 50, seed=10)
    filled = whole[:2] + b"\xff\xff" + whole[2:] + b"\0"
    assert Im2recCodec().transcode(filled).image == Im2recCodec().transcode(whole).image


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"<html>", "text"),
        (bytes(100), "unknown content"),
        (b"GIF89a" + bytes(50), "GIF"),
        (b"\xff\xd8\xff\xd9", "JPEG cut or damaged in its header"),
        (photograph(60, 50, seed=6)[:-100], "JPEG cut short"),
        (png(60, 50)[:-100], "PNG damaged"),
        (png(60, 50)[:20], "PNG cut in its header"),
        (png_of_rows(np.zeros((1, 4), np.uint8), 0, 8, width=2**20 + 1), "PNG damaged"),
    ],
)
def test_the_reason_says_what_a_file_is(data: bytes, reason: str) -> None:
    with pytest.raises(UnusableImage, match=f"^{reason}$"):
        Im2recCodec().transcode(data)


def test_an_image_that_no_jpeg_can_hold_is_refused_before_it_is_made() -> None:
    line = png_of_rows(np.zeros((1, 70_000), np.uint8), 0, 8)
    with pytest.raises(UnusableImage, match="65,500"):
        Im2recCodec().transcode(line)
    with pytest.raises(UnusableImage, match="65,500"):
        Im2recCodec(resize=480).transcode(png(1400, 1))
    assert Im2recCodec(encoding=".png").transcode(line).image


def test_a_size_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(UnusableImage, match="too large"):
        Im2recCodec(resize=2**31 - 1, encoding=".png").transcode(png(2, 2))


@pytest.mark.parametrize("name", [*IMAGES, "cut.jpg"])
def test_a_file_that_is_passed_through_is_not_touched(name: str) -> None:
    data = IMAGES.get(name) or photograph(60, 50, seed=6)[:-100]
    assert Im2recCodec(pass_through=True, resize=10, color=0).transcode(data).image is data


@pytest.mark.parametrize("data", [b"", b"<html>", bytes(100), b"\xff\xd8\xff", photograph(60, 50, seed=6)[:50]])
def test_what_is_no_image_is_not_passed_through(data: bytes) -> None:
    with pytest.raises(UnusableImage):
        Im2recCodec(pass_through=True).transcode(data)
