from __future__ import annotations

import pytest

from imagenet_ops.domain.image_list import format_list_line, parse_list_line


def test_a_line_is_im2recs() -> None:
    line = format_list_line(12, [3], "n01440764/n01440764_18.JPEG")
    assert line == "12\t3.000000\tn01440764/n01440764_18.JPEG\n"
    assert format_list_line(12, [3, 0.5], "a.JPEG") == "12\t3.000000\t0.500000\ta.JPEG\n"


LINES = {
    "a tab": ("n01", "a\tb.JPEG", "n01/a%09b.JPEG"),
    "a line feed": ("n01", "a\nb.JPEG", "n01/a%0Ab.JPEG"),
    "a carriage return": ("n01", "a\rb.JPEG", "n01/a%0Db.JPEG"),
    "a zero": ("n01", "a\0b.JPEG", "n01/a%00b.JPEG"),
    "a delete": ("n01", "a\x7fb.JPEG", "n01/a%7Fb.JPEG"),
    "a percent sign": ("n01", "100%09.JPEG", "n01/100%2509.JPEG"),
    "blanks": ("n01", "a b.JPEG", "n01/a b.JPEG"),
    "umlauts": ("n01", "Löwe.JPEG", "n01/Löwe.JPEG"),
    "a folder": ("n01", "x/y.JPEG", "n01/x/y.JPEG"),
    "a tab in the class": ("n\t01", "a.JPEG", "n%0901/a.JPEG"),
    "a line feed in the class": ("n\n01", "a.JPEG", "n%0A01/a.JPEG"),
}


@pytest.mark.parametrize(("synset", "name", "path"), LINES.values(), ids=LINES.keys())
def test_no_name_can_break_a_line(synset: str, name: str, path: str) -> None:
    line = format_list_line(7, [11_220], f"{synset}/{name}")
    assert line == f"7\t11220.000000\t{path}\n"
    assert parse_list_line(line) == (7, 11_220.0, path)


def test_different_names_give_different_lines() -> None:
    names = ["a\tb", "a%09b", "a%2509b", "a\nb", "a%0Ab"]
    assert len({format_list_line(0, [0], f"n01/{name}") for name in names}) == len(names)


@pytest.mark.parametrize("line", ["", "1\t2.0\n", "1\t2.0\ta\tb\n", "x\t2.0\ta\n", "1\ty\ta\n", "1 2.0 a\n"])
def test_a_line_of_another_shape_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        parse_list_line(line)
