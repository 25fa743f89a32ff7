from __future__ import annotations

import pytest

from imagenet_ops.domain.synsets import parse_synset_names, synset_of_archive, synset_of_folder
from imagenet_ops.errors import DataError


@pytest.mark.parametrize("member", ["n01440764.tar", "fall11/n01440764.tar", "./a/b/n01440764.tar", "n01440764"])
def test_a_class_tar_is_named_by_its_file(member: str) -> None:
    assert synset_of_archive(member) == "n01440764"


@pytest.mark.parametrize(
    ("member", "place"),
    [
        ("n01/a.JPEG", ("n01", "a.JPEG")),
        ("train/n01/a.JPEG", ("n01", "a.JPEG")),
        ("./n01/a b.JPEG", ("n01", "a b.JPEG")),
        ("/n01/a.JPEG", ("n01", "a.JPEG")),
        ("a.JPEG", None),
        ("./a.JPEG", None),
        ("/a.JPEG", None),
        ("n01/", None),
        ("n01/../a.JPEG", None),
        ("n01/./a.JPEG", None),
        ("", None),
    ],
)
def test_a_file_belongs_to_the_folder_it_lies_in(member: str, place: tuple[str, str] | None) -> None:
    assert synset_of_folder(member) == place


def test_the_table_of_names_is_read_line_by_line() -> None:
    text = "n01440764\ttench, Tinca tinca\r\n\n  \nn01443537\tgoldfish\twith a tab\nn02\tHähnchen"
    assert parse_synset_names(text, "names.tsv") == {
        "n01440764": "tench, Tinca tinca",
        "n01443537": "goldfish\twith a tab",
        "n02": "Hähnchen",
    }


def test_an_empty_table_has_no_names() -> None:
    assert parse_synset_names("", "names.tsv") == {}


@pytest.mark.parametrize("line", ["n01443537 goldfish", "n01443537\t", "\tgoldfish", "n01443537\t  "])
def test_a_line_of_another_shape_is_told_by_its_number(line: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_synset_names(f"n01440764\ttench\n\n{line}\n", "names.tsv")
    assert str(caught.value) == f"names.tsv: line 3: expected synset, tab, name; found {line!r}"
