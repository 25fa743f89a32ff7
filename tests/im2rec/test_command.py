"""The command as a whole: what it writes, what it says, and what it leaves as it was."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from imagenet_ops.errors import ConfigError
from imagenet_ops.im2rec import quarantine
from tests.builders import jpeg
from tests.im2rec.commands import run_ours


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for seed in range(20):
        path = root / f"class {seed % 2}" / f"{seed}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(30, 20, seed))
    return root


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return tmp_path / "p"


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def damage(path: Path) -> bytes:
    path.write_bytes(path.read_bytes()[:-50])
    return path.read_bytes()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_second_run_writes_the_same_bytes(root: Path, prefix: Path, tmp_path: Path) -> None:
    results = []
    for _ in range(2):
        run_ours("--list", "--recursive", "--chunks", 3, prefix, root)
        run_ours("--resize", 16, prefix, root)
        results.append(snapshot(tmp_path))
    assert results[0] == results[1]
    assert len(results[0]) == 9


def test_stdout_is_the_table_of_labels_and_nothing_else(
    root: Path, prefix: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    run_ours("--list", "--recursive", prefix, root)
    run_ours(prefix, root)
    assert capsys.readouterr().out == "class 0 0\nclass 1 1\n"
    assert [record.message for record in caplog.records if record.name == "imagenet_ops.im2rec.command"] == [
        f"{prefix}.lst: 20 images",
        f"{prefix}.rec: 20 records, none skipped",
    ]


def test_images_in_no_list_and_empty_lists_are_told(root: Path, prefix: Path, caplog: pytest.LogCaptureFixture) -> None:
    run_ours("--list", "--recursive", "--chunks", 7, "--train-ratio", 0.5, "--test-ratio", 0.5, prefix, root)
    assert warnings(caplog) == ["6 of 20 images are in no list, for shares are rounded down"]
    caplog.clear()
    run_ours("--list", "--recursive", "--chunks", 8, prefix, root)
    assert warnings(caplog)[0] == "1 list without an image"


def test_lists_of_an_earlier_run_are_told(root: Path, prefix: Path, caplog: pytest.LogCaptureFixture) -> None:
    run_ours("--list", "--recursive", "--chunks", 2, prefix, root)
    run_ours("--list", "--recursive", prefix, root)
    told = f"without --list these lists of PREFIX will be packed too: {prefix}_0.lst, {prefix}_1.lst"
    assert warnings(caplog) == [told]
    caplog.clear()
    run_ours(prefix, root)
    taken = f"these lists are all taken, for they begin with PREFIX: {prefix}.lst, {prefix}_0.lst, {prefix}_1.lst"
    assert warnings(caplog) == [taken]


@pytest.mark.parametrize("name", [" a.jpg", "a\tb.jpg", "a\nb.jpg", "a\rb.jpg"])
def test_a_name_that_no_list_holds_is_told_and_then_counted(
    name: str, root: Path, prefix: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / name).write_bytes(jpeg(9, 9))
    run_ours("--list", prefix, root)
    assert warnings(caplog)[0].startswith("1 image will be missed when the lists are packed")
    assert run_ours("--max-skipped-fraction", 1, prefix, root) == 0
    assert "0 records, 1 skipped" in caplog.text or "0 records, 2 skipped" in caplog.text


def test_a_name_that_is_no_utf8_is_kept_and_told(
    root: Path, prefix: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.jpg")).write_bytes(jpeg(9, 9))
    run_ours("--list", prefix, root)
    assert (tmp_path / "p.lst").read_bytes() == b"0\t0.000000\t\xff.jpg\n"
    assert run_ours(prefix, root) == 0
    assert warnings(caplog) == [
        "1 image with a name that is no UTF-8, which the lists keep byte for byte; im2rec.py can't read them: "
        r"\udcff.jpg"
    ]


def test_what_cant_be_packed_is_copied_and_told(
    root: Path, prefix: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_ours("--list", "--recursive", "--no-shuffle", prefix, root)
    cut = damage(root / "class 0" / "4.jpg")
    (root / "class 1" / "3.jpg").unlink()
    with open(f"{prefix}.lst", "a") as file:
        file.write("what is this\n")
    assert run_ours("--max-skipped-fraction", 0.2, prefix, root) == 0
    folder = tmp_path / "p_quarantine" / "p"
    assert set((folder / "reasons.tsv").read_text().splitlines()) == {
        "7\tclass 0/4.jpg\tJPEG cut short\t7_class_0_4.jpg.unusable",
        "16\tclass 1/3.jpg\tfile can't be read: No such file or directory\t",
        "\tline 21\tfewer than 3 fields between tabs\t",
    }
    assert snapshot(folder)["7_class_0_4.jpg.unusable"] == cut
    assert warnings(caplog)[0].startswith(f"{prefix}.rec: 18 records, 3 skipped (1 ")
    assert (tmp_path / "p.idx").read_text().count("\n") == 18


def test_too_many_skipped_images_leave_the_old_records_and_the_other_lists_go_on(
    root: Path, prefix: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_ours("--list", "--recursive", "--no-shuffle", "--chunks", 2, prefix, root)
    (tmp_path / "p_0.rec").write_bytes(b"old")
    damage(root / "class 0" / "4.jpg")
    assert run_ours(prefix, root) == 1
    assert warnings(caplog)[0].startswith(f"{prefix}_0.rec: not written: 1 skipped (1 JPEG cut short) of 10 images")
    assert snapshot(tmp_path).keys() == {"p_0.lst", "p_0.rec", "p_1.lst", "p_1.rec", "p_1.idx"}
    assert (tmp_path / "p_0.rec").read_bytes() == b"old"


def test_the_quarantine_is_that_of_the_last_run(root: Path, prefix: Path, tmp_path: Path) -> None:
    run_ours("--list", "--recursive", prefix, root)
    whole = (root / "class 0" / "4.jpg").read_bytes()
    damage(root / "class 0" / "4.jpg")
    assert run_ours("--quarantine", tmp_path / "bad", prefix, root) == 1
    assert (tmp_path / "bad" / "p" / "reasons.tsv").exists()
    (root / "class 0" / "4.jpg").write_bytes(whole)
    assert run_ours("--quarantine", tmp_path / "bad", prefix, root) == 0
    assert snapshot(tmp_path / "bad" / "p") == {}


def test_copies_end_where_they_would_fill_the_disk(
    root: Path, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_ours("--list", "--recursive", "--no-shuffle", prefix, root)
    sizes = [len(damage(root / "class 0" / f"{number}.jpg")) for number in (0, 2, 4)]
    monkeypatch.setattr(quarantine, "MAX_COPIED_BYTES", sum(sizes) - 1)
    assert run_ours(prefix, root) == 1
    lines = (tmp_path / "p_quarantine" / "p" / "reasons.tsv").read_text().splitlines()
    assert [bool(line.split("\t")[3]) for line in lines] == [True, True, False]


def test_a_record_id_that_is_there_twice_is_told(root: Path, prefix: Path, caplog: pytest.LogCaptureFixture) -> None:
    Path(f"{prefix}.lst").write_text("1\t0\tclass 0/0.jpg\n1\t0\tclass 0/2.jpg\n")
    assert run_ours(prefix, root) == 0
    assert warnings(caplog) == [f"{prefix}.rec: 1 record with the id of an earlier one; an index leads to one of them"]


def test_an_empty_list_becomes_empty_records_and_is_told(
    root: Path, prefix: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "p.lst").touch()
    assert run_ours(prefix, root) == 0
    assert snapshot(tmp_path) == {"p.lst": b"", "p.idx": b"", "p.rec": b""}
    assert warnings(caplog) == [f"{prefix}.rec: 0 records, none skipped"]


def test_links_are_written_through(root: Path, prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "large disk").mkdir()
    for name in ("p.lst", "p.idx", "p.rec"):
        (tmp_path / name).symlink_to(f"large disk/{name}")
    for _ in range(2):
        assert run_ours("--list", prefix, root / "class 0") == run_ours(prefix, root / "class 0") == 0
    assert snapshot(tmp_path / "large disk") == snapshot(tmp_path)
    assert all((tmp_path / name).is_symlink() for name in ("p.lst", "p.idx", "p.rec"))


@pytest.mark.parametrize("num_thread", [0, -3])
def test_a_number_of_processes_below_one_is_one(num_thread: int, root: Path, prefix: Path, tmp_path: Path) -> None:
    run_ours("--list", "--recursive", prefix, root)
    assert run_ours("--num-thread", num_thread, prefix, root) == 0
    assert (tmp_path / "p.idx").read_text().count("\n") == 20


@pytest.mark.parametrize("path", ["class 0", "class 0/0.jpg/x", "loop", "x" * 300, "../nowhere.jpg", "nowhere\x85.jpg"])
def test_a_path_without_a_file_is_counted(
    path: str, root: Path, prefix: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "loop").symlink_to("loop")
    Path(f"{prefix}.lst").write_text(f"1\t0\tclass 0/0.jpg\n2\t0\t{path}\n")
    assert run_ours("--max-skipped-fraction", 0.5, prefix, root) == 0
    assert f"{prefix}.rec: 1 record, 1 skipped (1 file can't be read: " in warnings(caplog)[0]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--list", "p", "nowhere"), "ROOT .*nowhere: no such folder"),
        (("--list", "p", "root"), "no name that ends in .jpeg .jpg .png in it; --recursive"),
        (("--list", "--recursive", "--exts", ".gif", "--", "p", "root"), "no name that ends in .gif in it or below"),
        (("--list", "--recursive", "nowhere/p", "root"), "its folder does not exist"),
        (("p", "root"), "PREFIX .*/p: no .lst file begins like this"),
        (("root", "root"), "PREFIX .*/root, which is a folder"),
        (("nowhere/p", "root"), "nowhere: No such file"),
        (("p", "root/class 0/0.jpg"), "ROOT .*0.jpg: no such folder"),
    ],
)
def test_what_would_give_nothing_is_an_error(
    arguments: tuple[str, ...], fault: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=fault):
        run_ours(*arguments)
    assert snapshot(tmp_path) == {}


def test_a_dry_run_says_what_would_be_written_and_writes_nothing(
    root: Path, prefix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_ours("--list", "--dry-run", "--recursive", "--chunks", 2, prefix, root)
    assert capsys.readouterr().out == f"would write {prefix}_0.lst: 10 images\nwould write {prefix}_1.lst: 10 images\n"
    assert snapshot(tmp_path) == {}
    run_ours("--list", prefix, root / "class 0")
    run_ours("--list", "--dry-run", prefix, root / "class 0")
    run_ours("--dry-run", prefix, root)
    assert capsys.readouterr().out == (
        f"would write {prefix}.lst: 10 images, in place of the file that is there\n"
        f"would write {prefix}.rec: 10 images\n"
    )
    assert snapshot(tmp_path).keys() == {"p.lst"}


def test_without_packing_no_image_library_is_loaded() -> None:
    script = "import sys, imagenet_ops.im2rec.command; print(*sorted({'cv2', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"
