from __future__ import annotations

import pytest

from imagenet_ops.domain.keyed_hash import keyed_hash


def test_the_values_never_change() -> None:
    """A change here would give every dataset another sample and another order."""
    assert keyed_hash(0, "validation", "n01440764", "n01440764_18.JPEG") == 16795368113018728763
    assert keyed_hash(2**63 - 1, "order train", "n01440764", "ö\\xff.JPEG") == 7445517152227495401


@pytest.mark.parametrize(
    "other",
    [
        (1, "validation", "n01", "a"),
        (0, "order train", "n01", "a"),
        (0, "validation", "n02", "a"),
        (0, "validation", "n01", "b"),
    ],
)
def test_every_ingredient_counts(other: tuple[int, str, str, str]) -> None:
    assert keyed_hash(*other) != keyed_hash(0, "validation", "n01", "a")


def test_the_values_fill_64_bits_evenly() -> None:
    values = [keyed_hash(5, "order validation", "n01", str(index)) for index in range(4000)]
    assert max(values) < 2**64
    for bit in range(64):
        assert 1800 < sum(value >> bit & 1 for value in values) < 2200
