from __future__ import annotations

import math

import pytest

from imagenet_ops.records.label_ranges import LabelRanges


def test_labels_and_ranges_with_both_ends() -> None:
    ranges = LabelRanges("8-9, 1,2,5-7,6-8,-3--2")
    assert [label for label in range(-5, 12) if label in ranges] == [-3, -2, 1, 2, 5, 6, 7, 8, 9]


def test_a_range_inside_another_does_not_shorten_it() -> None:
    assert 9 in LabelRanges("1-10,2-3")


def test_a_label_between_two_whole_numbers_lies_in_a_range_over_it() -> None:
    assert 5.5 in LabelRanges("5-6")
    assert 5.5 not in LabelRanges("5,6")


def test_what_is_no_number_lies_in_no_range() -> None:
    assert [label for label in (math.nan, math.inf, -math.inf) if label in LabelRanges("-9-999999999999999")] == []


@pytest.mark.parametrize("text", ["", ",", "1,", "a", "1-", "1.5", "9-5", "1--", "1" * 16, "٣"])
def test_a_text_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="range"):
        LabelRanges(text)
