"""The profile `fast`: what stays as it is, what is changed, and what is refused."""

from __future__ import annotations

import random
import zlib
from typing import Any

import cv2
import numpy as np
import pytest
import simplejpeg

from imagenet_ops.adapters import fast_codec
from imagenet_ops.adapters.fast_codec import FastCodec
from imagenet_ops.adapters.jpeg_codec import UnnamedSampling
from imagenet_ops.adapters.stored_image import Pixels, StoredImage
from imagenet_ops.adapters.unusable_image import UnusableImage
from tests.builders import exif_segment, jpeg, picture, png, png_chunk, png_of_rows


def opencvs(data: bytes) -> Pixels:
    """Decoded by OpenCV, which turns a picture upright by itself."""
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), np.uint8)


def store(data: bytes, short_edge: int = 16, quality: int = 90, **changes: Any) -> StoredImage:
    return FastCodec(short_edge, quality, **changes).transcode(data)


def decoded(data: bytes, short_edge: int = 65_500, **changes: Any) -> Pixels:
    """The pixels as they are before they are encoded, of an image that must not stay as it is."""
    pixels = store(data, short_edge, max_kept_bytes=0, **changes).pixels
    assert pixels is not None
    return pixels


def reason_of(data: bytes, short_edge: int = 16, **changes: Any) -> str:
    with pytest.raises(UnusableImage) as caught:
        store(data, short_edge, **changes)
    return str(caught.value)


def distance(one: Pixels, other: Pixels) -> int:
    assert one.shape == other.shape
    return int(np.abs(one.astype(int) - other.astype(int)).max())


# What stays


@pytest.mark.parametrize("check", ["decode", "structure"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize(("width", "height"), [(40, 24), (24, 40), (40, 12), (1, 1), (1, 300)])
def test_a_jpeg_that_is_small_enough_stays_byte_by_byte(width: int, height: int, mode: Any, check: str) -> None:
    data = jpeg(width, height, mode=mode)
    stored = store(data, 24, check=check)
    assert stored == StoredImage(data, "kept", width, height, 0, None)


CHANGED = {
    "larger than asked for": (jpeg(40, 25), {}),
    "more bytes than allowed": (jpeg(40, 24), {"max_kept_bytes": 100}),
    "CMYK": (jpeg(40, 24, mode="CMYK"), {}),
    "grey where colour is asked for": (jpeg(40, 24, mode="L"), {"keep_grey": False}),
    "turned by its camera": (jpeg(40, 24, orientation=3), {}),
    "to be enlarged": (jpeg(40, 23), {"enlarge": True}),
    "a PNG": (png(40, 24), {}),
}


@pytest.mark.parametrize(("data", "changes"), CHANGED.values(), ids=CHANGED.keys())
def test_what_has_to_change_is_encoded_again(data: bytes, changes: dict[str, Any]) -> None:
    stored = store(data, 24, **changes)
    assert stored.treatment != "kept"
    assert stored.image != data
    assert opencvs(stored.image).shape[:2] == (stored.height, stored.width)


COMMENT = b"\xff\xfe\x00\x0bA comment"
ICC = b"\xff\xe2\x00\x14ICC_PROFILE\0\1\1abcd"


@pytest.mark.parametrize("check", ["decode", "structure"])
def test_metadata_and_what_lies_behind_the_end_are_cut_out_and_no_pixel_changes(check: str) -> None:
    plain = jpeg(40, 24)
    data = plain[:2] + exif_segment(1) + ICC + plain[2:20] + COMMENT + plain[20:] + b"behind the end"
    stored = store(data, 24, check=check)
    assert stored.image == plain
    assert stored.num_dropped_bytes == len(data) - len(plain)


@pytest.mark.parametrize("check", ["decode", "structure"])
@pytest.mark.parametrize("tail", [jpeg(80, 48), b"\xff\xd9", b"\0" * 512], ids=["an image", "an end", "zeros"])
def test_only_the_first_of_the_images_in_a_file_stays(tail: bytes, check: str) -> None:
    stored = store(jpeg(40, 24) + tail, 24, check=check)
    assert (stored.image, stored.num_dropped_bytes) == (jpeg(40, 24), len(tail))


@pytest.mark.parametrize("check", ["decode", "structure"])
def test_metadata_stay_where_that_is_asked_for(check: str) -> None:
    plain = jpeg(40, 24)
    data = plain[:2] + exif_segment(1) + ICC + plain[2:] + COMMENT
    stored = store(data, 24, check=check, keep_metadata=True)
    assert stored.image == data[: -len(COMMENT)]
    assert stored.num_dropped_bytes == len(COMMENT)


# What changes


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_jpeg_of_any_colours_becomes_the_pixels_that_opencv_sees(mode: Any) -> None:
    data = jpeg(40, 24, mode=mode)
    assert distance(decoded(data, keep_grey=False), opencvs(data)) <= 2


def flat_jpeg(*sampling: int) -> bytes:
    """One unit of a middle grey with any sampling factors: each block is a difference of 0 and an end."""
    header = bytearray(jpeg(16, 16)[: jpeg(16, 16).index(b"\xff\xda") + 14])
    frame = header.index(b"\xff\xc0")
    header[frame + 11 : frame + 20 : 3] = bytes(sampling)
    blocks = [(factors >> 4) * (factors & 15) for factors in sampling]
    height, width = (8 * max(factors >> shift & 15 for factors in sampling) for shift in (0, 4))
    header[frame + 5 : frame + 9] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    bits = "001010" * blocks[0] + "0000" * (blocks[1] + blocks[2])
    bits += "1" * (-len(bits) % 8)
    return bytes(header) + int(bits, 2).to_bytes(len(bits) // 8, "big") + b"\xff\xd9"


@pytest.mark.parametrize("check", ["decode", "structure"])
@pytest.mark.parametrize("sampling", [(0x11, 0x22, 0x22), (0x22, 0x21, 0x11), (0x24, 0x11, 0x11), (0x31, 0x11, 0x11)])
def test_a_jpeg_of_unusual_sampling_is_brought_to_the_usual_one(sampling: tuple[int, ...], check: str) -> None:
    data = flat_jpeg(*sampling)
    stored = store(data, 65_500, check=check)
    assert stored.treatment == "reencoded" and stored.pixels is not None
    assert distance(stored.pixels, opencvs(data)) == 0
    shrunk = store(data, 3, check=check)
    assert (shrunk.treatment, min(shrunk.width, shrunk.height)) == ("shrunk", 3)
    assert reason_of(data[:-2], 3, check=check) == "JPEG cut short"


def test_a_jpeg_of_usual_sampling_stays() -> None:
    assert store(flat_jpeg(0x22, 0x11, 0x11)).treatment == "kept"
    assert store(flat_jpeg(0x21, 0x21, 0x21)).treatment == "kept"


@pytest.mark.parametrize("mode", ["L", "L16"])
def test_grey_stays_grey(mode: Any) -> None:
    assert decoded(png(40, 24, mode=mode)).shape == (24, 40)
    stored = store(png(40, 24, mode=mode), 12)
    assert stored.pixels is not None and stored.pixels.shape == (12, 20)
    assert simplejpeg.decode_jpeg_header(stored.image)[2] == "Gray"
    assert decoded(jpeg(40, 24, mode="L")).shape == (24, 40)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "RGB16", "L16"])
def test_a_png_of_any_kind_becomes_8_bit_rgb(mode: Any) -> None:
    pixels = decoded(png(40, 24, mode=mode), keep_grey=False)
    assert (pixels.shape, pixels.dtype) == ((24, 40, 3), np.uint8)
    drawn = picture(40, 24, 0, {"L": 1, "L16": 1, "RGBA": 4}.get(mode, 3)).astype(float)
    if mode == "RGBA":
        alpha = drawn[:, :, 3:] / 255
        drawn = drawn[:, :, :3] * alpha + 255 * (1 - alpha)
    if mode != "P":
        assert np.abs(pixels[:, :, ::-1] - drawn).max() <= 0.51


def test_a_palette_gives_its_own_colours() -> None:
    rows = np.array([[0, 1], [1, 0]], np.uint8)
    data = png_of_rows(rows, 3, 8, bytes([255, 0, 0, 0, 0, 255]))
    assert decoded(data)[:, :, ::-1].tolist() == [[[255, 0, 0], [0, 0, 255]], [[0, 0, 255], [255, 0, 0]]]


def test_what_is_transparent_shows_white() -> None:
    rows = np.array([[10, 20, 30, 0, 40, 50, 60, 255, 100, 0, 200, 128]], np.uint8)
    assert decoded(png_of_rows(rows, 6, 8))[:, :, ::-1].tolist() == [[[255, 255, 255], [40, 50, 60], [177, 127, 227]]]


@pytest.mark.parametrize("byte_order", ["MM", "II"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_cameras_orientation_gives_the_upright_picture(orientation: int, byte_order: Any) -> None:
    data = jpeg(40, 24, seed=3, orientation=orientation, byte_order=byte_order)
    assert distance(decoded(data), opencvs(data)) <= 2


def test_the_eight_orientations_are_eight_different_pictures() -> None:
    turned = [decoded(jpeg(24, 24, seed=3, orientation=orientation)) for orientation in range(1, 9)]
    for index, one in enumerate(turned):
        assert all(distance(one, other) > 20 for other in turned[:index])


@pytest.mark.parametrize("short_edge", [24, 12])
def test_no_metadata_goes_into_an_image_that_is_encoded_again(short_edge: int) -> None:
    stored = store(jpeg(40, 24, orientation=6), short_edge)
    assert b"Exif" not in stored.image
    assert stored.num_dropped_bytes == len(exif_segment(6))
    assert opencvs(stored.image).shape == (40 * short_edge // 24, short_edge, 3)


def test_an_orientation_in_a_png_is_applied_too() -> None:
    whole = png(20, 10)
    turned = whole[:33] + png_chunk(b"eXIf", exif_segment(6)[10:]) + whole[33:]
    assert distance(decoded(turned), np.ascontiguousarray(np.rot90(decoded(whole), -1))) == 0


@pytest.mark.parametrize(
    ("width", "height", "short_edge", "stored_width", "stored_height", "treatment"),
    [
        (40, 24, 12, 20, 12, "shrunk"),
        (24, 40, 12, 12, 20, "shrunk"),
        (41, 24, 12, 20, 12, "shrunk"),  # 20.5: cut down, as im2rec does
        (24, 24, 24, 24, 24, "reencoded"),
        (10, 6, 12, 10, 6, "reencoded"),
        (1, 1, 16, 1, 1, "reencoded"),
        (900, 700, 12, 15, 12, "shrunk"),
    ],
)
def test_an_image_is_shrunk_to_the_short_edge_and_never_enlarged(
    width: int, height: int, short_edge: int, stored_width: int, stored_height: int, treatment: str
) -> None:
    stored = store(png(width, height), short_edge)
    assert (stored.width, stored.height, stored.treatment) == (stored_width, stored_height, treatment)
    assert opencvs(stored.image).shape == (stored_height, stored_width, 3)
    of_jpeg = store(jpeg(width, height), short_edge, max_kept_bytes=0)
    assert (of_jpeg.width, of_jpeg.height, of_jpeg.treatment) == (stored_width, stored_height, treatment)


@pytest.mark.parametrize(("width", "height", "size"), [(10, 6, (20, 12)), (1, 1, (12, 12)), (1, 30, (12, 360))])
def test_a_small_image_is_enlarged_where_that_is_asked_for(width: int, height: int, size: tuple[int, int]) -> None:
    stored = store(png(width, height), 12, enlarge=True)
    assert ((stored.width, stored.height), stored.treatment) == (size, "enlarged")
    assert opencvs(stored.image).shape[:2] == size[::-1]


def test_the_short_edge_is_measured_on_the_upright_picture() -> None:
    assert decoded(jpeg(40, 20, orientation=6), 10).shape == (20, 10, 3)


@pytest.mark.parametrize("factor", [1, 2, 3, 4, 6, 8, 12, 16])
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_jpeg_decoded_at_a_smaller_scale_shows_the_same_picture(factor: int, orientation: int) -> None:
    """Beside the whole picture brought to the same size by OpenCV."""
    data = jpeg(50 * factor + 3, 40 * factor + 1, seed=5, orientation=orientation)
    found = decoded(data, 40)
    height, width = found.shape[:2]
    expected = cv2.resize(opencvs(data), (width, height), interpolation=cv2.INTER_AREA)
    assert min(height, width) == 40
    assert np.abs(found.astype(int) - expected.astype(int)).mean() < 2


def test_the_stored_jpeg_shows_its_pixels() -> None:
    stored = store(jpeg(80, 60), 48, 95)
    assert stored.pixels is not None
    assert distance(opencvs(stored.image), stored.pixels) <= 12


def test_a_single_pixel_keeps_its_colour() -> None:
    assert decoded(png(1, 1, seed=5), 16, enlarge=True)[:, :, ::-1].reshape(-1, 3).tolist() == (
        [picture(1, 1, 5)[0, 0].tolist()] * 256
    )


def test_the_same_bytes_give_the_same_bytes() -> None:
    data = jpeg(80, 60)
    assert store(data, 48).image == store(data, 48).image


def test_a_better_quality_is_a_longer_file() -> None:
    data = png(80, 60)
    assert len(store(data, 60, 50).image) < len(store(data, 60, 100).image)


# What is refused


@pytest.mark.parametrize("changes", [{}, {"check": "structure"}, {"max_kept_bytes": 0}], ids=str)
@pytest.mark.parametrize("orientation", [None, 6])
def test_a_jpeg_cut_anywhere_behind_its_header_is_cut_short(orientation: int | None, changes: dict[str, Any]) -> None:
    whole = jpeg(64, 48, orientation=orientation)
    scan = whole.index(b"\xff\xda") + 14
    assert {reason_of(whole[:length], 64, **changes) for length in range(scan, len(whole) - 2)} == {"JPEG cut short"}


@pytest.mark.parametrize("check", ["decode", "structure"])
def test_a_jpeg_cut_in_its_header_is_unusable(check: str) -> None:
    whole = jpeg(64, 48)
    reasons = {reason_of(whole[:length], 64, check=check) for length in range(4, whole.index(b"\xff\xda"))}
    assert reasons <= {"JPEG cut short", "JPEG damaged"}


def test_a_png_cut_anywhere_is_cut_short() -> None:
    whole = png(20, 10)
    assert {reason_of(whole[:length]) for length in range(33, len(whole))} == {"PNG cut short"}
    assert {reason_of(whole[:length]) for length in range(8, 33)} == {"PNG cut in its header"}


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
    assert decoded(png_with(png_chunk(b"IDAT", zlib.compress(ROWS)))).shape == (10, 20, 3)
    assert reason_of(png_with(body)) == "PNG damaged"


@pytest.mark.parametrize("changes", [{}, {"max_kept_bytes": 0}], ids=str)
def test_flipped_bytes_in_a_jpeg_are_mostly_seen_and_never_crash(changes: dict[str, Any]) -> None:
    chance = random.Random(11)
    whole = jpeg(160, 120, seed=1)
    start = whole.index(b"\xff\xda") + 14
    seen = 0
    for _ in range(200):
        damaged = bytearray(whole)
        for position in chance.sample(range(start, len(whole) - 2), 8):
            damaged[position] ^= 0xFF
        try:
            store(bytes(damaged), 120, **changes)
        except UnusableImage as reason:
            assert str(reason) in ("JPEG damaged", "JPEG cut short")
            seen += 1
    assert seen > 150


OTHERS = {
    "empty": b"",
    "GIF": b"GIF89a\1\0\1\0",
    "WebP": b"RIFF\0\0\0\0WEBPVP8 ",
    "BMP": b"BM" + bytes(60),
    "TIFF": b"II*\0" + bytes(60),
    "AppleDouble file": b"\0\5\x16\7" + bytes(60),
    "text": b"<html>Not found</html>",
    "unknown content": bytes(1000),
    "JPEG cut short": b"\xff\xd8\xff",
    "JPEG damaged": b"\xff\xd8\xff\xd8\xff\xd9",
    "PNG cut in its header": b"\x89PNG\r\n\x1a\n",
}


@pytest.mark.parametrize(("reason", "data"), OTHERS.items(), ids=OTHERS.keys())
def test_what_is_no_jpeg_or_png_is_refused_for_what_it_is(reason: str, data: bytes) -> None:
    assert reason_of(data) == reason


@pytest.mark.parametrize("make", [jpeg, png])
@pytest.mark.parametrize(("width", "height"), [(2, 65_501), (65_501, 2)])
def test_an_image_too_long_to_be_stored_is_unusable(make: Any, width: int, height: int) -> None:
    assert reason_of(png(width, height), 2) == "long edge over 65,500 pixels"


def test_an_image_longer_than_asked_for_is_unusable_even_where_it_could_stay() -> None:
    assert reason_of(jpeg(200, 10), 10, long_edge_pixels=199) == "long edge over 199 pixels"
    assert store(jpeg(200, 10), 10, long_edge_pixels=200).treatment == "kept"
    assert reason_of(png(1, 20), 8, enlarge=True, long_edge_pixels=100) == "long edge over 100 pixels"


def test_the_longest_image_is_stored() -> None:
    assert decoded(png(2, 65_500, mode="L"), 2).shape == (65_500, 2)


def claiming(width: int, height: int, data: bytes) -> bytes:
    """The JPEG with another size in its frame header."""
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + data[at + 4 :]


def test_a_jpeg_that_would_take_too_much_memory_is_refused_before_it_does() -> None:
    bomb = claiming(65_000, 65_000, jpeg(16, 16))
    assert reason_of(bomb, 16_384) == "more than 67,108,864 pixels to decode"
    assert reason_of(bomb, 65_000) == "more than 67,108,864 pixels to decode"
    assert reason_of(bomb, 480) == "JPEG damaged"  # at 1/8 of its size there would be room for it


@pytest.mark.parametrize("scan", ["one of three components", "progressive"])
def test_a_jpeg_whose_coefficients_would_take_too_much_memory_is_refused(scan: str) -> None:
    """They are held at the image's full size, whatever the scale it is decoded at."""
    data = claiming(64_000, 8_000, jpeg(16, 16))
    if scan == "progressive":
        data = data.replace(b"\xff\xc0", b"\xff\xca")
    else:
        at = data.index(b"\xff\xda")
        data = data[:at] + b"\xff\xda\x00\x08\1\0\0\x3f\0" + data[at + 14 :]
    assert reason_of(data, 480) == "more than 67,108,864 pixels to decode"


@pytest.mark.parametrize(("offset", "value"), [(1, 0xC3), (4, 12)], ids=["lossless", "12-bit"])
def test_a_kind_of_jpeg_that_no_decoder_here_knows_is_refused_for_that(offset: int, value: int) -> None:
    data = bytearray(jpeg(16, 16))
    data[data.index(b"\xff\xc0") + offset] = value
    assert reason_of(bytes(data)) == "unsupported kind of JPEG"


@pytest.mark.parametrize(("width", "height"), [(0, 16), (16, 0)])
def test_a_jpeg_without_a_size_is_refused(width: int, height: int) -> None:
    assert reason_of(claiming(width, height, jpeg(16, 16))) == "JPEG without a size"


def test_a_small_image_whose_sampling_turbojpeg_has_no_name_for_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the header says: where the check can't tell, the image is encoded again."""

    def can_not_tell(_: bytes) -> None:
        raise UnnamedSampling

    monkeypatch.setattr(fast_codec, "check_jpeg", can_not_tell)
    assert store(jpeg(40, 24), 24).treatment == "reencoded"
