"""Searches by numpy, beside the plain ones of Python."""

from __future__ import annotations

import random
import re

import pytest

from imagenet_ops.adapters import byte_search
from imagenet_ops.adapters.byte_search import find_marker, holds_aligned_magic
from imagenet_ops.domain.recordio import MAGIC

MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 100, 4099])
def test_an_aligned_magic_is_found_wherever_it_stands(size: int) -> None:
    filler = random.Random(size).randbytes(size).replace(MAGIC, b"abcd")
    assert not holds_aligned_magic(filler)
    for position in range(0, size - 3):
        image = filler[:position] + MAGIC + filler[position + 4 :]
        assert holds_aligned_magic(image) == (position % 4 == 0)
        assert not holds_aligned_magic(image[: position + 3])


@pytest.mark.parametrize("window", [1, 2, 7, 64, 2**16])
def test_the_first_marker_is_found_as_by_a_regular_expression(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_search, "_WINDOW_BYTES", window)
    chance = random.Random(3)
    for _ in range(300):
        data = bytes(chance.choices([0xFF, 0x00, 0xD0, 0xD7, 0xD8, 0xD9, 0x41], [4, 6, 2, 2, 0.2, 0.2, 9], k=60))
        for position in (0, 1, 17, 59, 60, 61):
            expected = MARKER.search(data, position)
            assert find_marker(data, position) == (expected.start() if expected else None)
