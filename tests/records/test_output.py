from __future__ import annotations

import os
from pathlib import Path

import pytest

from imagenet_ops.errors import ConfigError, NoSpace
from imagenet_ops.records.output import Outputs
from tests.records.conftest import Records
from tests.records.record_files import tiny_records, write_records


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_appear_together_when_all_are_written(tmp_path: Path) -> None:
    with Outputs() as outputs:
        for name in ("a", "b"):
            file = outputs.create(tmp_path / name)
            file.write(name.encode())
            file.finish()
        assert all(name.endswith(".partial") for name in names_in(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "a", "b": "b"}


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    with Outputs() as outputs:
        outputs.create(tmp_path / ("ü" * 127)).write(b"x")
    assert names_in(tmp_path) == ["ü" * 127]


def test_a_failure_leaves_nothing_and_keeps_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(KeyboardInterrupt), Outputs(force=True) as outputs:
        outputs.create(tmp_path / "a").write(b"new")
        outputs.remove(tmp_path / "a")
        raise KeyboardInterrupt
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


def test_what_exists_is_refused_even_a_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"link: exists already; --force writes over it$"):
        Outputs().claim(tmp_path / "link")


@pytest.mark.parametrize("make_other_name", [os.link, os.symlink])
def test_an_input_is_never_written_over_under_no_other_name_either(tmp_path: Path, make_other_name: object) -> None:
    (tmp_path / "a.rec").write_text("old")
    assert callable(make_other_name)
    make_other_name(tmp_path / "a.rec", tmp_path / "b.rec")
    with pytest.raises(ConfigError, match=r"b\.rec: is an input too; an output needs another name$"):
        Outputs(inputs=[tmp_path / "a.rec"], force=True).claim(tmp_path / "b.rec")


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing/a: its folder does not exist$"), Outputs() as outputs:
        outputs.create(tmp_path / "missing" / "a")


def test_a_directory_or_a_device_is_never_written_over(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(ConfigError, match=r"is no regular file; --force would not write over it either$"):
            Outputs(force=True).claim(path)


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NoSpace, match=r"a: the disk is full; nothing of it was kept$"), Outputs() as outputs:
        outputs.create(tmp_path / "a").write(b"x")
    assert names_in(tmp_path) == []


WRONG_FILES = {
    "a missing file": ("missing.rec", "missing.rec: no such file"),
    "a file under a file": ("a.rec/x", "a.rec/x: no such file"),
    "a directory": ("folder", "folder: a record file expected, found a directory"),
    "a named pipe": ("pipe", "pipe: a record file expected, found no regular file"),
    "a device": ("/dev/null", "/dev/null: a record file expected, found no regular file"),
    "an empty name": ("", ".: a record file expected, found a directory"),
    "a name with a line feed": ("x\ny", "x\\ny: no such file"),
    "a name that is no UTF-8": ("x\udcff", "x\\udcff: no such file"),
}


@pytest.mark.parametrize(("name", "message"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_what_is_no_record_file_is_refused_before_anything_is_written(
    records: Records, name: str, message: str
) -> None:
    write_records("a.rec", tiny_records(1))
    Path("folder").mkdir()
    os.mkfifo("pipe")
    assert records("ls", name).err == f"ConfigError: {message}\n"
    assert records("merge", "out", "a.rec", name).err == f"ConfigError: {message}\n"
    assert names_in(Path()) == ["a.rec", "folder", "pipe"]


@pytest.mark.parametrize("name", ["-dash.rec", "a b.rec", "[nope]x.rec", "line\nfeed.rec", "x\udcff.rec", "*.rec"])
def test_any_name_can_be_read_and_written(records: Records, name: str) -> None:
    write_records(name, tiny_records(2))
    records("reindex", "--", name)
    assert records("merge", "--renumber", "--", f"{name}2", name, name).exit_code == 0
    assert records("split", f"./{name}2.rec", "--chunks", "2", f"--to={name}").exit_code == 0
    assert len(names_in(Path())) == 8


@pytest.mark.parametrize("name", ["", ".", "..", "folder/", ".rec", "folder/.."])
def test_an_output_needs_a_name(records: Records, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_records("a.rec", tiny_records(1))
    with pytest.raises(SystemExit):
        records("merge", name, "a.rec")
    assert f"expected a file's name, found {name!r}" in capsys.readouterr().err
