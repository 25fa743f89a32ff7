"""Lists, records and indexes against those of MXNet's own im2rec.py, option by option."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.builders import jpeg, png
from tests.im2rec.commands import run_ours
from tests.im2rec.original import run_original
from tests.im2rec.photographs import build_folder

pytestmark = pytest.mark.trainer

# Name: options of --list, options of packing.
OPTIONS = {
    "nothing but defaults": ("", ""),
    "classes": ("--recursive", "--resize 48 --quality 90"),
    "in order": ("--recursive --no-shuffle", "--resize 48 --center-crop"),
    "short forms": ("--rec --no-s", "--res 40 --cen --q 80 --enc .png"),
    "chunks": ("--recursive --chunks 4", "--resize 32"),
    "more chunks than the images fill": ("--recursive --chunks 14", ""),
    "a third is for testing": ("--recursive --train-ratio 0.5 --test-ratio 0.33", ""),
    "no test": ("--recursive --train-ratio 0.29", ""),
    "rounding drops an image": ("--recursive --train-ratio 0.7 --test-ratio 0.3", ""),
    "ratios over one": ("--recursive --train-ratio 0.8 --test-ratio 0.4", ""),
    "a ratio for testing that has no effect": ("--recursive --test-ratio 0.2", ""),
    "nothing to train on": ("--recursive --train-ratio 0", ""),
    "chunks that are split": ("--recursive --chunks 4 --train-ratio 0.6 --test-ratio 0.1 --no-shuffle", ""),
    "one suffix": ("--recursive --exts .png", "--encoding .png"),
    "suffixes in both cases": ("--recursive --exts .JPG .jpg", ""),
    "files as they are": ("--recursive", "--pass-through"),
    "files as they are, whatever else": ("--recursive", "--pass-through --resize 32 --center-crop --color 0"),
    "squares": ("--recursive", "--center-crop"),
    "enlarged": ("--recursive", "--resize 200"),
    "worst quality": ("--recursive", "--quality 1"),
    "quality over the best": ("--recursive", "--resize 50 --quality 150"),
    "quality under the worst": ("--recursive", "--resize 50 --quality=-3"),
    "grey": ("--recursive", "--color 0 --resize 56"),
    "as they are read": ("--recursive", "--color -1 --resize 56 --center-crop"),
    "png": ("--recursive", "--encoding .png --resize 40 --quality 3"),
    "png as they are read": ("--recursive", "--encoding .png --color=-1 --quality 9"),
    "grey png of default quality": ("--recursive", "--encoding .png --color 0 --center-crop"),
    "labels packed": ("--recursive", "--pack-label"),
    "processes": ("--recursive --chunks 2", "--num-thread 3 --resize 48"),
}

LIST = """\
7\t2.000000\tn01/0.jpg
 3 \t -1.5 \t n02/10.jpg \t
12\t1\t2.5\t-3e4\tn02/11.jpg

99\t0.1\t0.2\tn02/deeper/20.jpg\r
4\tnan\tinf\tn02/12.jpg
5\tinf\tn02/13.jpg
6\ttwo fields
six\t1\tn02/13.jpg
6\tone\tn02/13.jpg
18446744073709551615\t3\t./n10/../n10/again.jpg
+1_0\t16777217\tn02/14.jpg
7\t5\tn01/1.jpg
100\t1\tN03/40.jpg"""
GIVEN_LISTS = {
    "first label": "",
    "all labels": "--pack-label",
    "all labels, files as they are": "--pack-label --pass-through",
}


# What OpenCV can't read either; im2rec.py leaves it out where it has several processes, and ends with one.
BAD_IMAGES = {
    "empty.jpg": b"",
    "page.jpg": b"<html>not found</html>",
    "cut in its head.jpg": jpeg(60, 60, seed=1)[:100],
    "cut.png": png(60, 60, seed=2)[:-300],
    "zeros.jpg": bytes(5000),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    build_folder(root)
    return root


@pytest.fixture(scope="module")
def damaged_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("damaged")
    for seed in range(5):
        (root / f"good {seed}.jpg").write_bytes(jpeg(60, 50, seed))
    for name, data in BAD_IMAGES.items():
        (root / name).write_bytes(data)
    return root


@pytest.fixture(scope="module")
def theirs(root: Path, damaged_root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder of all that im2rec.py writes, a subfolder a case; and what its --list prints."""
    folder = tmp_path_factory.mktemp("theirs")
    for name in (*OPTIONS, *GIVEN_LISTS, "bad images"):
        (folder / name).mkdir()
    listings = [[*listing.split(), "--list", f"{folder}/{name}/p", f"{root}"] for name, (listing, _) in OPTIONS.items()]
    packings = [[*packing.split(), f"{folder}/{name}/p", f"{root}"] for name, (_, packing) in OPTIONS.items()]
    for name, packing in GIVEN_LISTS.items():
        (folder / name / "p.lst").write_bytes(LIST.encode())
        packings.append([*packing.split(), f"{folder}/{name}/p", f"{root}"])
    damaged = [["--list", f"{folder}/bad images/p", f"{damaged_root}"]]
    damaged.append(["--num-thread", "2", "--resize", "40", f"{folder}/bad images/p", f"{damaged_root}"])
    printed = run_original([*listings, *packings, *damaged])
    return folder, dict(zip(OPTIONS, printed, strict=False))


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", OPTIONS)
def test_lists_and_records_are_the_same(
    name: str,
    root: Path,
    theirs: tuple[Path, dict[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, printed = theirs
    listing, packing = OPTIONS[name]
    assert run_ours(*listing.split(), "--list", tmp_path / "p", root) == 0
    assert capsys.readouterr().out == printed[name]
    assert run_ours(*packing.split(), tmp_path / "p", root) == 0
    assert digests(tmp_path) == digests(folder / name)
    assert not (tmp_path / "p_quarantine").exists()


@pytest.mark.parametrize("name", GIVEN_LISTS)
def test_records_of_a_list_made_by_hand_are_the_same(
    name: str, root: Path, theirs: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "p.lst").write_bytes(LIST.encode())
    assert run_ours(*GIVEN_LISTS[name].split(), "--max-skipped-fraction", 1, tmp_path / "p", root) == 0
    assert digests(tmp_path) == digests(theirs[0] / name)


def test_records_beside_images_that_cant_be_packed_are_the_same(
    damaged_root: Path, theirs: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    run_ours("--list", tmp_path / "p", damaged_root)
    assert run_ours("--resize", 40, "--max-skipped-fraction", 0.5, tmp_path / "p", damaged_root) == 0
    assert digests(tmp_path) == digests(theirs[0] / "bad images")
    reasons = (tmp_path / "p_quarantine" / "p" / "reasons.tsv").read_text().splitlines()
    assert {line.split("\t")[1] for line in reasons} == set(BAD_IMAGES)
