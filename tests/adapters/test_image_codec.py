from __future__ import annotations

import random
import zlib

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from imagenet_ops.adapters.image_codec import Transcoded, UnusableImage, measure, transcode
from imagenet_ops.manifests import PixelMoments
from tests.builders import exif_segment, jpeg, picture, png, png_chunk, png_of_rows

Pixels = NDArray[np.uint8]


def opencvs(data: bytes) -> Pixels:
    """Decoded by OpenCV, which turns a picture upright by itself."""
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)


def unresized(data: bytes, short_edge: int) -> Pixels:
    return transcode(data, short_edge, 90).pixels


def reason_of(data: bytes, short_edge: int = 16) -> str:
    with pytest.raises(UnusableImage) as caught:
        transcode(data, short_edge, 90)
    return str(caught.value)


def distance(one: Pixels, other: Pixels) -> int:
    assert one.shape == other.shape
    return int(np.abs(one.astype(int) - other.astype(int)).max())


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_jpeg_of_any_colours_becomes_the_pixels_that_opencv_sees(mode: str) -> None:
    data = jpeg(40, 24, mode=mode)
    assert distance(unresized(data, 24), opencvs(data)) <= 2


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "RGB16", "L16"])
def test_a_png_of_any_kind_becomes_8_bit_rgb(mode: str) -> None:
    pixels = unresized(png(40, 24, mode=mode), 24)
    assert (pixels.shape, pixels.dtype) == ((24, 40, 3), np.uint8)
    if mode != "P":
        drawn = picture(40, 24, 0, {"L": 1, "L16": 1, "RGBA": 4}.get(mode, 3))[:, :, :3]
        assert (pixels[:, :, ::-1] == drawn).all()


def test_a_palette_gives_its_own_colours() -> None:
    rows = np.array([[0, 1], [1, 0]], np.uint8)
    data = png_of_rows(rows, 3, 8, bytes([255, 0, 0, 0, 0, 255]))
    assert unresized(data, 2)[:, :, ::-1].tolist() == [[[255, 0, 0], [0, 0, 255]], [[0, 0, 255], [255, 0, 0]]]


def test_alpha_is_dropped_and_the_colours_under_it_stay() -> None:
    rows = np.array([[10, 20, 30, 0, 40, 50, 60, 255]], np.uint8)
    assert unresized(png_of_rows(rows, 6, 8), 1)[:, :, ::-1].tolist() == [[[10, 20, 30], [40, 50, 60]]]


@pytest.mark.parametrize("byte_order", ["MM", "II"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_cameras_orientation_gives_the_upright_picture(orientation: int, byte_order: str) -> None:
    data = jpeg(40, 24, seed=3, orientation=orientation, byte_order=byte_order)
    assert distance(unresized(data, 24), opencvs(data)) <= 2


def test_the_eight_orientations_are_eight_different_pictures() -> None:
    turned = [unresized(jpeg(24, 24, seed=3, orientation=orientation), 24) for orientation in range(1, 9)]
    for index, one in enumerate(turned):
        assert all(distance(one, other) > 20 for other in turned[:index])


def test_no_metadata_goes_into_the_stored_image() -> None:
    stored = transcode(jpeg(40, 24, orientation=6), 24, 90).jpeg
    assert b"Exif" not in stored
    assert opencvs(stored).shape == (40, 24, 3)


@pytest.mark.parametrize(
    ("width", "height", "short_edge", "stored_width", "stored_height"),
    [
        (40, 24, 12, 20, 12),
        (24, 40, 12, 12, 20),
        (41, 24, 12, 20, 12),  # 20.5: cut down, as im2rec does
        (24, 24, 12, 12, 12),
        (24, 24, 24, 24, 24),
        (10, 6, 12, 20, 12),
        (1, 1, 16, 16, 16),
        (1, 30, 8, 8, 240),
    ],
)
def test_the_short_edge_is_as_asked(
    width: int, height: int, short_edge: int, stored_width: int, stored_height: int
) -> None:
    stored = transcode(png(width, height), short_edge, 90)
    assert stored.pixels.shape == (stored_height, stored_width, 3)
    assert opencvs(stored.jpeg).shape == (stored_height, stored_width, 3)


def test_the_short_edge_is_measured_on_the_upright_picture() -> None:
    assert transcode(jpeg(40, 20, orientation=6), 10, 90).pixels.shape == (20, 10, 3)


def test_the_stored_jpeg_shows_its_pixels() -> None:
    stored = transcode(jpeg(80, 60), 48, 95)
    assert distance(opencvs(stored.jpeg), stored.pixels) <= 12


def test_a_single_pixel_keeps_its_colour() -> None:
    stored = transcode(png(1, 1, seed=5), 16, 90)
    assert np.unique(stored.pixels.reshape(-1, 3), axis=0).tolist() == [picture(1, 1, 5)[0, 0, ::-1].tolist()]


def test_the_same_bytes_give_the_same_bytes() -> None:
    data = jpeg(80, 60)
    assert transcode(data, 48, 90).jpeg == transcode(data, 48, 90).jpeg


def test_a_better_quality_is_a_longer_file() -> None:
    data = png(80, 60)
    assert len(transcode(data, 60, 50).jpeg) < len(transcode(data, 60, 100).jpeg)


@pytest.mark.parametrize("orientation", [None, 6])
def test_a_jpeg_cut_anywhere_behind_its_header_is_cut_short(orientation: int | None) -> None:
    whole = jpeg(64, 48, orientation=orientation)
    scan = whole.index(b"\xff\xda") + 14
    assert {reason_of(whole[:length]) for length in range(scan, len(whole) - 2)} == {"JPEG cut short"}


def test_a_jpeg_cut_in_its_header_is_unusable() -> None:
    whole = jpeg(64, 48)
    reasons = {reason_of(whole[:length]) for length in range(2, whole.index(b"\xff\xda"))}
    assert reasons <= {"JPEG cut short", "JPEG damaged"}


def test_a_png_cut_anywhere_is_cut_short() -> None:
    whole = png(20, 10)
    assert {reason_of(whole[:length]) for length in range(8, len(whole))} == {"PNG cut short"}


def test_a_png_with_a_flipped_byte_is_damaged() -> None:
    damaged = bytearray(png(20, 10))
    damaged[60] ^= 0xFF
    assert reason_of(bytes(damaged)) == "PNG damaged"


def png_with(body: bytes) -> bytes:
    """A PNG of 20 × 10 pixels whose checksums are right, whatever its chunks hold."""
    return png(20, 10)[:33] + body + png_chunk(b"IEND", b"")


ROWS = bytes(61) * 10
WRONG_BODIES = {
    "no pixels": b"",
    "pixels that do not unpack": png_chunk(b"IDAT", b"garbage" * 5),
    "too few rows": png_chunk(b"IDAT", zlib.compress(ROWS[:-61])),
    "an unknown row filter": png_chunk(b"IDAT", zlib.compress(b"\x09" + ROWS[1:])),
    "a wrong checksum of the rows": png_chunk(b"IDAT", zlib.compress(ROWS)[:-4] + b"abcd"),
}


@pytest.mark.parametrize("body", WRONG_BODIES.values(), ids=WRONG_BODIES.keys())
def test_a_png_with_right_checksums_and_wrong_pixels_is_damaged(body: bytes) -> None:
    assert unresized(png_with(png_chunk(b"IDAT", zlib.compress(ROWS))), 10).shape == (10, 20, 3)
    assert reason_of(png_with(body)) == "PNG damaged"


def test_an_orientation_in_a_png_is_applied_too() -> None:
    whole = png(20, 10)
    turned = whole[:33] + png_chunk(b"eXIf", exif_segment(6)[10:]) + whole[33:]
    assert unresized(turned, 10).shape == (20, 10, 3)


def test_flipped_bytes_in_a_jpeg_are_mostly_seen_and_never_crash() -> None:
    chance = random.Random(11)
    whole = jpeg(160, 120, seed=1)
    start = whole.index(b"\xff\xda") + 14
    seen = 0
    for _ in range(200):
        damaged = bytearray(whole)
        for position in chance.sample(range(start, len(whole) - 2), 8):
            damaged[position] ^= 0xFF
        try:
            transcode(bytes(damaged), 120, 90)
        except UnusableImage as reason:
            assert str(reason) in ("JPEG damaged", "JPEG cut short")
            seen += 1
    assert seen > 150


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"text", bytes(1000)])
def test_what_is_no_image_is_unusable(data: bytes) -> None:
    assert reason_of(data) in ("JPEG cut short", "JPEG damaged", "PNG cut short", "PNG damaged")


@pytest.mark.parametrize(
    ("width", "height", "short_edge"), [(1, 8200, 8), (8200, 1, 8), (2, 65_501, 2), (65_501, 2, 2)]
)
def test_an_image_too_long_to_be_stored_is_unusable(width: int, height: int, short_edge: int) -> None:
    assert reason_of(png(width, height, mode="L"), short_edge) == "long edge over 65,500 pixels"


def test_the_longest_image_is_stored() -> None:
    assert transcode(png(2, 65_500, mode="L"), 2, 90).pixels.shape == (65_500, 2, 3)


def test_an_image_too_long_for_the_png_reader_is_unusable() -> None:
    assert reason_of(png(1_000_001, 1, mode="L"), 1) == "PNG damaged"


def exact_moments(pixels: Pixels) -> PixelMoments:
    red_first = pixels[:, :, ::-1].astype(np.int64).reshape(-1, 3)
    return PixelMoments(
        num_pixels=len(red_first),
        sums=red_first.sum(0).tolist(),
        sums_of_squares=(red_first**2).sum(0).tolist(),
    )


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (480, 640), (480, 1999), (1201, 1601)])
def test_sums_over_pixels_are_exact(shape: tuple[int, int]) -> None:
    pixels = np.random.default_rng(shape[1]).integers(0, 256, (*shape, 3), dtype=np.uint8)
    assert measure(pixels) == exact_moments(pixels)


@pytest.mark.parametrize("value", [0, 1, 254, 255])
def test_sums_over_a_flat_picture_are_exact(value: int) -> None:
    pixels = np.full((1000, 1500, 3), value, np.uint8)
    assert measure(pixels) == exact_moments(pixels)


def test_sums_of_nearly_flat_pictures_are_exact() -> None:
    pixels = np.full((900, 900, 3), 254, np.uint8)
    pixels[::7, ::3] = 255
    assert measure(pixels) == exact_moments(pixels)


def test_moments_are_of_the_pixels_that_go_into_the_jpeg() -> None:
    stored: Transcoded = transcode(jpeg(80, 60, seed=2), 30, 90)
    assert measure(stored.pixels) == exact_moments(stored.pixels)
