from __future__ import annotations

import random
import struct

import pytest

from imagenet_ops.domain.exif import read_orientation
from tests.builders import exif_segment, jpeg


def app1(body: bytes) -> bytes:
    return b"\xff\xe1" + struct.pack(">H", 2 + len(body)) + body


@pytest.mark.parametrize("byte_order", ["MM", "II"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_all_eight_orientations_are_read_in_both_byte_orders(orientation: int, byte_order: str) -> None:
    assert read_orientation(jpeg(8, 8, orientation=orientation, byte_order=byte_order)) == orientation


@pytest.mark.parametrize("byte_order", ["MM", "II"])
@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_is_none(orientation: int, byte_order: str) -> None:
    assert read_orientation(jpeg(8, 8, orientation=orientation, byte_order=byte_order)) == 1


def test_a_jpeg_without_exif_is_as_stored() -> None:
    assert read_orientation(jpeg(8, 8)) == 1


def test_exif_behind_other_segments_is_found() -> None:
    whole = jpeg(8, 8, orientation=6)
    xmp = app1(b"http://ns.adobe.com/xap/1.0/\0<x/>")
    comment = b"\xff\xfe\0\5abc"
    assert read_orientation(whole[:2] + xmp + comment + whole[2:]) == 6


def test_exif_behind_fill_bytes_is_found() -> None:
    whole = jpeg(8, 8, orientation=6)
    assert read_orientation(whole[:2] + b"\xff\xff" + whole[2:]) == 6


def test_exif_behind_the_start_of_the_scan_is_pixels() -> None:
    assert read_orientation(jpeg(8, 8) + exif_segment(6)) == 1


GARBAGE = {
    "nothing": b"",
    "a start only": b"\xff\xd8",
    "a PNG": b"\x89PNG\r\n\x1a\n",
    "an empty Exif segment": b"\xff\xd8" + app1(b"Exif\0\0"),
    "an unknown byte order": b"\xff\xd8" + app1(b"Exif\0\0XX\0\x2a\0\0\0\x08"),
    "a directory outside": b"\xff\xd8" + app1(b"Exif\0\0MM\0\x2a\xff\xff\xff\xff"),
    "entries without end": b"\xff\xd8" + app1(b"Exif\0\0MM\0\x2a\0\0\0\x08\xff\xff" + bytes(100)),
    "a segment of length zero": b"\xff\xd8\xff\xe0\0\0" + bytes(20),
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_as_stored(data: bytes) -> None:
    assert read_orientation(data) == 1


def test_a_cut_or_damaged_segment_is_never_an_exception() -> None:
    whole = jpeg(8, 8, orientation=8)
    chance = random.Random(3)
    for length in range(len(whole)):
        assert read_orientation(whole[:length]) in (1, 8)
    for _ in range(3000):
        damaged = bytearray(whole[:120])
        for _ in range(3):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        assert 1 <= read_orientation(bytes(damaged)) <= 8
