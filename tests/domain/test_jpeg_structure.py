from __future__ import annotations

import pytest

from imagenet_ops.adapters.byte_search import find_marker
from imagenet_ops.domain.jpeg_structure import JpegCutShort, JpegFault, find_end, read_structure
from tests.builders import exif_segment, jpeg

PLAIN = jpeg(40, 24)
SCAN = PLAIN.index(b"\xff\xda")
JFIF = b"\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0"
COMMENT = b"\xff\xfe\x00\x05abc"
ADOBE_RGB = b"\xff\xee\x00\x0eAdobe\0\x64\0\0\0\0\0"
ADOBE_YCC = ADOBE_RGB[:-1] + b"\1"


def with_segments(*segments: bytes) -> bytes:
    return PLAIN[:2] + b"".join(segments) + PLAIN[2:]


def frame_changed(marker: int = 0xC0, precision: int = 8) -> bytes:
    at = PLAIN.index(b"\xff\xc0")
    return PLAIN[: at + 1] + bytes([marker]) + PLAIN[at + 2 : at + 4] + bytes([precision]) + PLAIN[at + 5 :]


@pytest.mark.parametrize(("mode", "components"), [("RGB", 3), ("L", 1), ("CMYK", 4)])
def test_size_components_and_first_scan_are_told(mode: str, components: int) -> None:
    data = jpeg(40, 24, mode=mode)  # type: ignore[arg-type]
    found = read_structure(data)
    assert (found.width, found.height, found.num_components) == (40, 24, components)
    assert found.first_scan == data.index(b"\xff\xda")
    assert found.is_plain and not found.has_multiple_scans and not found.has_exif


def test_metadata_are_told_by_their_place_and_jfif_is_none() -> None:
    exif = exif_segment(1)
    base = len(read_structure(PLAIN).metadata)
    data = with_segments(JFIF, exif, COMMENT)
    found = read_structure(data)
    start = 2 + len(JFIF)
    assert found.metadata[: len(found.metadata) - base] == (
        (start, start + len(exif)),
        (start + len(exif), start + len(exif) + len(COMMENT)),
    )
    assert found.has_exif


def test_an_adobe_segment_tells_rgb_and_stays() -> None:
    assert read_structure(with_segments(ADOBE_RGB)).is_adobe_rgb
    assert not read_structure(with_segments(ADOBE_YCC)).is_adobe_rgb
    assert read_structure(with_segments(ADOBE_RGB)).metadata == read_structure(PLAIN).metadata


@pytest.mark.parametrize(
    ("marker", "precision", "plain"),
    [
        (0xC0, 8, True), (0xC1, 8, True), (0xC2, 8, True), (0xC1, 12, False), (0xC3, 8, False), (0xC9, 8, False),
        (0xCA, 8, False), (0xF7, 8, None),
    ],
)  # fmt: skip
def test_only_8_bit_huffman_coded_images_are_plain(marker: int, precision: int, plain: bool | None) -> None:
    data = frame_changed(marker, precision)
    if plain is None:  # JPEG-LS has no frame of ours
        with pytest.raises(JpegFault):
            read_structure(data)
    else:
        assert read_structure(data).is_plain == plain


@pytest.mark.parametrize("marker", [0xC2, 0xCA])
def test_a_progressive_image_has_multiple_scans(marker: int) -> None:
    assert read_structure(frame_changed(marker)).has_multiple_scans


def test_a_first_scan_without_all_components_is_not_the_only_one() -> None:
    one_component = b"\xff\xda\x00\x08\1\1\0\0\x3f\0"
    assert read_structure(PLAIN[:SCAN] + one_component + PLAIN[SCAN + 14 :]).has_multiple_scans


@pytest.mark.parametrize(
    ("sampling", "plain"),
    [
        ("11 11 11", True), ("22 11 11", True), ("21 11 11", True), ("41 11 11", True), ("21 21 21", True),
        ("22 21 21", True), ("22 21 11", False), ("11 22 22", False), ("31 11 11", False), ("42 11 11", False),
    ],
)  # fmt: skip
def test_only_an_image_with_usual_sampling_is_plain(sampling: str, plain: bool) -> None:
    data, at = bytearray(PLAIN), PLAIN.index(b"\xff\xc0")
    data[at + 11 : at + 20 : 3] = bytes.fromhex(sampling)
    assert read_structure(bytes(data)).is_plain == plain


def test_fill_bytes_before_a_marker_are_passed_over() -> None:
    data = PLAIN[:2] + b"\xff\xff\xff" + PLAIN[2:]
    assert read_structure(data).width == 40
    assert find_end(data, read_structure(data).first_scan, find_marker) == len(data)


def test_the_end_is_found_whatever_lies_behind_it() -> None:
    for tail in (b"", b"\0" * 100, b"\xff\xd9", PLAIN, b"\xff"):
        assert find_end(PLAIN + tail, SCAN, find_marker) == len(PLAIN)


def test_restart_markers_stuffed_bytes_and_tables_between_scans_are_no_end() -> None:
    scan = b"\xff\xda\x00\x08\1\1\0\0\x3f\0"
    table = b"\xff\xc4\x00\x04ab"
    body = b"abc\xff\x00def\xff\xd0ghi\xff\xd7"
    data = b"\xff\xd8" + scan + body + table + b"\xff" + table + scan + body + COMMENT + b"\xff\xff\xd9"
    assert find_end(data, 2, find_marker) == len(data)


@pytest.mark.parametrize("marker", [0xD8, 0x01, 0xF0, 0xC0])
def test_a_marker_that_has_no_place_behind_a_scan_is_damage(marker: int) -> None:
    data = PLAIN[:-2] + bytes([0xFF, marker]) + PLAIN[-2:]
    with pytest.raises(JpegFault, match="JPEG damaged"):
        find_end(data, SCAN, find_marker)


def test_a_cut_anywhere_is_found() -> None:
    for length in range(2, len(PLAIN)):
        with pytest.raises(JpegCutShort):
            find_end(PLAIN[:length], read_structure(PLAIN[:length]).first_scan, find_marker)


def test_no_flipped_byte_leads_to_anything_but_a_fault_or_an_answer() -> None:
    for position in range(2, len(PLAIN)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(PLAIN)
            damaged[position] ^= flip
            try:
                found = read_structure(bytes(damaged))
                assert found.first_scan < find_end(bytes(damaged), found.first_scan, find_marker) <= len(PLAIN)
            except JpegFault as fault:
                assert str(fault) in ("JPEG cut short", "JPEG damaged")
