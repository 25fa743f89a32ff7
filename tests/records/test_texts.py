from __future__ import annotations

import struct
from pathlib import Path

import pytest

from imagenet_ops.records.texts import format_count, format_label, format_name


@pytest.mark.parametrize(
    "text", ["0", "1", "-1", "21840", "16777216", "0.1", "2.5", "1e+09", "3e+38", "1.5e-05", "nan", "inf", "-inf"]
)
def test_a_label_is_written_as_short_as_it_can_be(text: str) -> None:
    (label,) = struct.unpack("<f", struct.pack("<f", float(text)))
    assert format_label(label) == text


def test_labels_next_to_each_other_are_told_apart() -> None:
    bits = [0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x7F7FFFFE, 1, 2]
    labels = [struct.unpack("<f", struct.pack("<I", bit))[0] for bit in bits]
    assert len(set(map(format_label, labels))) == len(labels)


def test_a_zero_has_no_sign() -> None:
    assert format_label(-0.0) == "0"


def test_a_name_stays_on_its_line() -> None:
    assert format_name(Path("Löwe a\nb\t\x1b[31m\udcff")) == "Löwe a\\nb\\t\\x1b[31m\\udcff"


def test_one_is_no_plural() -> None:
    assert [format_count(count, "record") for count in (0, 1, 1234)] == ["0 records", "1 record", "1,234 records"]
