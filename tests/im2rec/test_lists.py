"""Lists: what is found below a folder, how it is dealt out, and what a list's lines say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from imagenet_ops.errors import ConfigError
from imagenet_ops.im2rec.folder_walk import FoundImage, find_images
from imagenet_ops.im2rec.list_files import ListedImage, come_from_one_run, find_lists, read_list
from imagenet_ops.im2rec.listing import find_undecodable, find_unlistable, plan_lists
from imagenet_ops.im2rec.options import parse_options

JPG = (".jpg",)


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def plan(num_images: int, arguments: str) -> dict[str, list[int]]:
    """{file: record ids}."""
    images = [FoundImage(number, 0, f"{number}.jpg") for number in range(num_images)]
    lists = plan_lists(images, parse_options([*arguments.split(), "/p", "/root"]))
    return {planned.path.name: [image.record_id for image in planned.images] for planned in lists}


def test_folders_have_labels_in_the_order_in_which_their_images_are_found(tmp_path: Path) -> None:
    touch(tmp_path, "b/1.jpg", "b/c/2.JPG", "b/0.jpg", "B/3.jpg", "z.jpg", "a/none.txt", "empty/deep/4.jpg", "n10/.jpg")
    images, folders = find_images(tmp_path, JPG, recursive=True)
    assert folders == [".", "B", "b", "b/c", "empty/deep"]
    assert [(image.label, image.path) for image in images] == [
        (0, "z.jpg"),
        (1, "B/3.jpg"),
        (2, "b/0.jpg"),
        (2, "b/1.jpg"),
        (3, "b/c/2.JPG"),
        (4, "empty/deep/4.jpg"),
    ]
    assert [image.record_id for image in images] == list(range(6))


def test_without_recursion_only_the_folder_itself_counts(tmp_path: Path) -> None:
    touch(tmp_path, "b/1.jpg", "z.jpg", "y.jpg")
    assert [image.path for image in find_images(tmp_path, JPG, recursive=False)[0]] == ["y.jpg", "z.jpg"]


@pytest.mark.parametrize("target", [".", "..", "../..", "../twin", "loop"])
def test_links_that_lead_round_in_a_circle_are_refused(target: str, tmp_path: Path) -> None:
    touch(tmp_path, "root/a/1.jpg", "root/twin/2.jpg")
    (tmp_path / "root" / "twin" / "back").symlink_to("../a")
    (tmp_path / "root" / "a" / "loop").symlink_to(target)
    if target == "loop":
        assert len(find_images(tmp_path / "root", JPG, recursive=True)[0]) == 3  # it leads nowhere
        return
    with pytest.raises(ConfigError, match="links to a folder that it lies in"):
        find_images(tmp_path / "root", JPG, recursive=True)


def test_a_folder_may_be_linked_twice(tmp_path: Path) -> None:
    touch(tmp_path, "root/a/1.jpg")
    for name in ("b", "c"):
        (tmp_path / "root" / name).symlink_to("a")
    assert find_images(tmp_path / "root", JPG, recursive=True)[1] == ["a", "b", "c"]


def test_a_folder_that_cant_be_read_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert find_images(tmp_path / "a\n", JPG, recursive=True) == ([], [])
    assert f"{tmp_path}/a\\n: can't be read, its images are not listed: No such file or directory" in caplog.text


def test_the_shuffle_is_that_of_the_module_seeded_with_100() -> None:
    expected = list(range(1000))
    random.seed(100)
    random.shuffle(expected)
    assert plan(1000, "")["p.lst"] == expected


@pytest.mark.parametrize(
    ("num_images", "arguments", "sizes"),
    [
        (21, "", {"p.lst": 21}),
        (21, "--chunks 8", {f"p_{number}.lst": 3 if number < 7 else 0 for number in range(8)}),
        (21, "--train-ratio 0.7 --test-ratio 0.2", {"p_test.lst": 4, "p_val.lst": 3, "p_train.lst": 14}),
        (21, "--train-ratio 0.7 --test-ratio 0.3", {"p_test.lst": 6, "p_train.lst": 14}),
        (21, "--train-ratio 0.8 --test-ratio 0.4", {"p_test.lst": 8, "p_train.lst": 13}),
        (100, "--train-ratio 0.29", {"p_val.lst": 72, "p_train.lst": 28}),
        (
            5,
            "--chunks 2 --train-ratio 0.5",
            {"p_0_val.lst": 2, "p_0_train.lst": 1, "p_1_val.lst": 1, "p_1_train.lst": 1},
        ),
        (3, "--train-ratio 80", {"p_train.lst": 3}),
    ],
)
def test_images_are_dealt_to_chunks_and_shares(num_images: int, arguments: str, sizes: dict[str, int]) -> None:
    assert {name: len(ids) for name, ids in plan(num_images, arguments).items()} == sizes


def test_no_image_is_in_two_lists() -> None:
    ids = [number for part in plan(97, "--chunks 5 --train-ratio 0.6 --test-ratio 0.3").values() for number in part]
    assert sorted(ids) == list(range(97))


def test_paths_that_a_list_cant_hold_are_found() -> None:
    paths = ["a b.jpg", " a.jpg", "a\tb.jpg", "a\nb.jpg", "a\rb.jpg", "x/ a.jpg", "\u3000a.jpg", "\udcffa.jpg", "ä.jpg"]
    images = [FoundImage(0, 0, path) for path in paths]
    assert find_unlistable(images) == [" a.jpg", "a\tb.jpg", "a\nb.jpg", "a\rb.jpg", "\u3000a.jpg"]
    assert find_undecodable(images) == ["\udcffa.jpg"]


def test_a_prefix_takes_every_list_that_begins_like_it(tmp_path: Path) -> None:
    touch(tmp_path, "p.lst", "p_1.lst", "p2.lst", "p.lst.old", "q.lst", "pp/p.lst")
    (tmp_path / "p_dir.lst").mkdir()
    assert [path.name for path in find_lists(tmp_path / "p")] == ["p.lst", "p2.lst", "p_1.lst"]
    assert [path.name for path in find_lists(tmp_path / "pp")] == ["p.lst"]
    assert find_lists(tmp_path / "x") == []
    with pytest.raises(ConfigError, match="No such file"):
        find_lists(tmp_path / "nowhere" / "p")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("p.lst", True),
        ("p_0.lst p_1.lst p_10.lst", True),
        ("p_train.lst p_val.lst p_test.lst", True),
        ("p_0_train.lst p_0_val.lst", True),
        ("p.lst p_0.lst", False),
        ("p.lst p_train.lst", False),
        ("p_0.lst p_0_train.lst", False),
        ("p2.lst", False),
        ("p_train.lst p_train_old.lst", False),
    ],
)
def test_lists_of_more_than_one_run_are_told_apart(names: str, expected: bool) -> None:
    assert come_from_one_run([Path("/data", name) for name in names.split()], Path("/data/p")) is expected


def test_lines_of_a_list_are_read_as_the_original_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "p.lst"
    path.write_bytes(b"3\t1.000000\ta b/c.jpg\n\n 4 \t 2 \t -3.5 \t d.jpg \r\n5\t1e2\t\xff.jpg")
    bad = list[tuple[int, str]]()
    assert list(read_list(path, lambda *line: bad.append(line))) == [
        ListedImage(3, (1.0,), "a b/c.jpg"),
        ListedImage(4, (2.0, -3.5), "d.jpg"),
        ListedImage(5, (100.0,), "\udcff.jpg"),
    ]
    assert bad == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1\t2.jpg", "fewer than 3 fields between tabs"),
        (b"1 2 a.jpg", "fewer than 3 fields between tabs"),
        (b"1\t2\t", "fewer than 3 fields between tabs"),
        (b"x\t1\ta.jpg", "a record id that is no whole number"),
        (b"1.0\t1\ta.jpg", "a record id that is no whole number"),
        (b"\xef\xbb\xbf1\t1\ta.jpg", "a record id that is no whole number"),
        (b"-1\t1\ta.jpg", "a record id that is negative or needs more than 64 bits"),
        (b"18446744073709551616\t1\ta.jpg", "a record id that is negative or needs more than 64 bits"),
        (b"1\ta\tb.jpg", "a label that is no number"),
        (b"1\t\tb.jpg", "a label that is no number"),
        (b"1\t1e39\tb.jpg", "a label that needs more than 32 bits"),
        (b"1\t1\ta\0.jpg", "a zero byte in its path"),
    ],
)
def test_a_line_without_a_record_is_told_by_its_number(line: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "p.lst"
    path.write_bytes(b"3\t1.000000\tc.jpg\n" + line + b"\n")
    bad = list[tuple[int, str]]()
    assert len(list(read_list(path, lambda *line: bad.append(line)))) == 1
    assert bad == [(2, reason)]
