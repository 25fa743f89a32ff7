from __future__ import annotations

import pytest

from imagenet_ops.domain.png_check import find_png_fault
from tests.builders import png


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "RGB16"])
def test_a_whole_png_has_no_fault(mode: str) -> None:
    assert find_png_fault(png(20, 10, mode=mode)) is None


def test_bytes_behind_the_end_do_not_matter() -> None:
    assert find_png_fault(png(20, 10) + b"trailing junk") is None


def test_a_png_cut_anywhere_is_cut_short() -> None:
    whole = png(20, 10)
    assert {find_png_fault(whole[:length]) for length in range(len(whole))} == {"cut short"}


def test_any_flipped_byte_behind_the_signature_is_a_fault() -> None:
    whole = png(6, 4, mode="P")
    for position in range(8, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x01
        assert find_png_fault(bytes(damaged)) in ("damaged", "cut short"), position


def test_a_flipped_pixel_is_damage() -> None:
    damaged = bytearray(png(20, 10))
    damaged[60] ^= 0xFF
    assert find_png_fault(bytes(damaged)) == "damaged"


def test_a_chunk_of_four_gigabytes_is_cut_short() -> None:
    assert find_png_fault(b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIDAT") == "cut short"
