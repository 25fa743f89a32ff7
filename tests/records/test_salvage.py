"""Damage as each command meets it, with --salvage and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from imagenet_ops.errors import DataError
from imagenet_ops.records.reading import RecordReader
from tests.records.conftest import Records
from tests.records.record_files import (
    damage,
    encode,
    index_of,
    list_line,
    offsets_of,
    read_records,
    tiny_records,
    write_records,
)

ORIGINALS = tiny_records(8)
PLACES = offsets_of(ORIGINALS)
SAVED = [record for record in ORIGINALS if record.record_id not in (2, 7)]
SIZE = PLACES[-1] - 5


def write_damaged() -> None:
    """The head of record 2 is flipped, and the last record is cut."""
    write_records("a.rec", ORIGINALS, with_list=True)
    damage("a.rec", PLACES[2], b"\xf5\xdc\x28\x31")
    Path("a.rec").write_bytes(Path("a.rec").read_bytes()[:SIZE])


LOSSES = (
    f"a.rec: byte {PLACES[2]:,}: f5dc2831 where RecordIO's magic 0a23d7ce is expected; "
    f"lost bytes {PLACES[2]:,} to {PLACES[3]:,} ({PLACES[3] - PLACES[2]:,} bytes)\n"
    f"a.rec: byte {PLACES[7]:,}: record cut short: {PLACES[8] - PLACES[7] - 8:,} bytes expected, "
    f"{SIZE - PLACES[7] - 8:,} left; lost bytes {PLACES[7]:,} to {SIZE:,} ({SIZE - PLACES[7]:,} bytes)\n"
)
SUMMARY = f"lost: {PLACES[3] - PLACES[2] + SIZE - PLACES[7]:,} bytes in 2 ranges\n"
COMMANDS = {
    "ls": ["ls", "a.rec"],
    "cat": ["cat", "a.rec", "--all", "--to", "out"],
    "show": ["show", "a.rec", "--to", "sheet.png"],
    "stats": ["stats", "a.rec"],
    "merge": ["merge", "out", "a.rec"],
    "split": ["split", "a.rec", "--chunks", "3", "--to", "out"],
    "split by bytes": ["split", "a.rec", "--max-bytes", "9999", "--to", "out"],
    "reindex": ["reindex", "a.rec"],
    "filter": ["filter", "a.rec", "--to", "out", "--labels", "0-9"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_without_salvage_a_command_stops_at_the_first_damage_and_shows_no_output(
    records: Records, command: list[str]
) -> None:
    write_damaged()
    result = records(*command)
    assert (result.exit_code, result.err) == (
        1,
        f"DataError: a.rec: byte {PLACES[2]:,}: f5dc2831 where RecordIO's magic 0a23d7ce is expected; "
        "--salvage reads on behind the damage\n",
    )
    assert sorted(path.name for path in Path().iterdir() if path.is_file()) == ["a.lst", "a.rec"]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_with_salvage_every_loss_is_told_once_and_the_exit_code_is_3(records: Records, command: list[str]) -> None:
    write_damaged()
    result = records(*command, "--salvage")
    assert (result.exit_code, result.err) == (3, LOSSES + SUMMARY)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_salvage_of_a_good_file_is_exit_code_0_and_silent(records: Records, command: list[str]) -> None:
    write_records("a.rec", ORIGINALS)
    result = records(*command, "--salvage")
    assert (result.exit_code, result.err) == (0, "")


def test_ls_lists_all_that_is_left(records: Records) -> None:
    write_damaged()
    lines = records("ls", "a.rec", "--salvage").out.splitlines()
    assert [line.split("\t")[1] for line in lines] == [str(record.record_id) for record in SAVED]


def test_cat_extracts_all_that_is_left(records: Records) -> None:
    write_damaged()
    records("cat", "a.rec", "--all", "--to", "out", "--salvage")
    assert {path.read_bytes() for path in Path("out").iterdir()} == {record.image for record in SAVED}


def test_merge_mends_a_file_with_its_index_and_list(records: Records) -> None:
    write_damaged()
    records("merge", "out", "a.rec", "--salvage")
    assert Path("out.rec").read_bytes() == encode(SAVED)
    assert Path("out.idx").read_text() == index_of(SAVED)
    assert Path("out.lst").read_text() == "".join(map(list_line, SAVED))


def test_split_counts_only_what_is_left(records: Records) -> None:
    write_damaged()
    records("split", "a.rec", "--chunks", 3, "--to", "out", "--salvage")
    assert [len(read_records(f"out_{index:05d}.rec")) for index in range(3)] == [2, 2, 2]


def test_an_index_of_a_damaged_file_leads_to_all_that_is_left(records: Records) -> None:
    write_damaged()
    records("reindex", "a.rec", "--salvage")
    assert Path("a.idx").read_text() == "".join(f"{record.record_id}\t{PLACES[record.record_id]}\n" for record in SAVED)


def test_a_file_that_becomes_shorter_while_it_is_read_is_an_error_even_with_salvage(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    write_records(path, ORIGINALS)
    found = RecordReader(salvage=True).records(path)
    assert next(found).offset == 0
    os.truncate(path, PLACES[2] + 5)
    with pytest.raises(DataError, match=rf"a\.rec: byte {PLACES[2] + 5:,}: has become shorter while it was read$"):
        list(found)


def test_a_file_of_only_garbage_is_all_lost(records: Records) -> None:
    Path("junk.rec").write_bytes(b"hello" * 1000)
    assert records("ls", "junk.rec").exit_code == 1
    assert records("ls", "junk.rec", "--salvage") == (
        3,
        "",
        "junk.rec: byte 0: 68656c6c where RecordIO's magic 0a23d7ce is expected; lost bytes 0 to 5,000 (5,000 bytes)\n"
        "lost: 5,000 bytes in 1 range\n",
    )
