from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from imagenet_ops.domain.recordio import MAGIC, ImageRecord
from tests.builders import jpeg
from tests.records.conftest import Records
from tests.records.record_files import (
    encode,
    index_of,
    list_line,
    offsets_of,
    read_records,
    tiny_records,
    write_records,
)


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def test_merge_joins_records_index_and_lists(records: Records) -> None:
    first, second = tiny_records(3), tiny_records(4, first_id=10)
    write_records("a.rec", first, with_list=True)
    write_records("b.rec", second, with_list=True)
    result = records("merge", "all", "a.rec", "b.rec")
    assert result.out == f"all.rec: 7 records, {len(encode(first + second)):,} bytes\n"
    assert Path("all.rec").read_bytes() == encode(first + second)
    assert Path("all.idx").read_text() == index_of(first + second)
    assert Path("all.lst").read_text() == "".join(map(list_line, first + second))


def test_merge_writes_a_list_only_where_every_input_has_one(records: Records) -> None:
    write_records("a.rec", tiny_records(3), with_list=True)
    write_records("b.rec", tiny_records(3, first_id=10))
    records("merge", "all.rec", "a.rec", "b.rec")
    assert names() == ["a.lst", "a.rec", "all.idx", "all.rec", "b.rec"]


def test_merge_names_the_first_doubled_id_and_leaves_nothing(records: Records) -> None:
    write_records("a.rec", tiny_records(3))
    write_records("b.rec", tiny_records(3, first_id=2))
    result = records("merge", "all", "a.rec", "b.rec")
    assert (result.exit_code, result.err) == (
        1,
        "DataError: b.rec: byte 0: record id 2 is there twice, an index holds it once; "
        "`records merge --renumber` gives new ids from 0 on\n",
    )
    assert names() == ["a.rec", "b.rec"]


def test_merge_gives_new_ids_and_changes_nothing_else(records: Records) -> None:
    originals = [
        ImageRecord(2**64 - 1, (1.0, 2.0), jpeg(9, 9)),
        ImageRecord(int.from_bytes(MAGIC + MAGIC, "little"), (3.0,), MAGIC + jpeg(8, 8)),
    ]
    write_records("a.rec", originals, with_list=True)
    records("merge", "all", "a.rec", "a.rec", "--renumber")
    expected = [
        ImageRecord(index, record.labels, record.image) for index, record in enumerate([*originals, *originals])
    ]
    assert read_records("all.rec") == expected
    assert Path("all.idx").read_text() == index_of(expected)
    assert [line.split("\t")[0] for line in Path("all.lst").read_text().splitlines()] == ["0", "1", "2", "3"]


def test_a_list_in_another_order_is_an_error_that_names_the_way_out(records: Records) -> None:
    write_records("a.rec", tiny_records(2))
    Path("a.lst").write_text("".join(map(list_line, reversed(tiny_records(2)))))
    result = records("merge", "all", "a.rec")
    assert (result.exit_code, result.err) == (
        1,
        f"DataError: a.lst: no line for record 1 at byte {offsets_of(tiny_records(2))[1]:,}, or not in the records' "
        "order; --no-list goes without the lists\n",
    )
    assert records("merge", "all", "a.rec", "--no-list").exit_code == 0
    assert names() == ["a.lst", "a.rec", "all.idx", "all.rec"]


def test_lines_of_records_that_were_skipped_are_left_out_and_the_last_needs_no_line_feed(records: Records) -> None:
    write_records("a.rec", tiny_records(3)[::2])
    Path("a.lst").write_text("".join(map(list_line, tiny_records(3))).removesuffix("\n"))
    records("merge", "all", "a.rec")
    assert Path("all.lst").read_text() == "".join(map(list_line, tiny_records(3)[::2]))


def test_a_list_line_without_an_id_is_named(records: Records) -> None:
    write_records("a.rec", tiny_records(1))
    Path("a.lst").write_text("index\tlabel\tpath\n")
    assert records("merge", "all", "a.rec").err == "DataError: a.lst: line 1: begins with no record id\n"


@pytest.mark.parametrize("num_chunks", [1, 2, 3, 10])
def test_split_gives_chunks_of_even_numbers_that_merge_to_the_same_file(records: Records, num_chunks: int) -> None:
    originals = tiny_records(10)
    write_records("a.rec", originals)
    records("split", "a.rec", "--chunks", num_chunks, "--to", "part")
    chunks = [f"part_{index:05d}.rec" for index in range(num_chunks)]
    sizes = [len(read_records(chunk)) for chunk in chunks]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
    for chunk in chunks:
        assert Path(chunk).with_suffix(".idx").read_text() == index_of(read_records(chunk))
    records("merge", "again", *chunks)
    assert Path("again.rec").read_bytes() == Path("a.rec").read_bytes()


def test_split_by_bytes_fills_each_chunk_as_far_as_it_goes(records: Records) -> None:
    originals = tiny_records(10)
    write_records("a.rec", originals)
    limit = offsets_of(originals)[4] + 3
    records("split", "a.rec", "--max-bytes", limit, "--to", "part")
    chunks = sorted(Path().glob("part_*.rec"))
    assert b"".join(chunk.read_bytes() for chunk in chunks) == encode(originals)
    for chunk, following in pairwise(chunks):
        next_size = len(encode(read_records(following)[:1]))
        assert chunk.stat().st_size <= limit < chunk.stat().st_size + next_size


def test_split_refuses_a_record_that_no_chunk_can_hold(records: Records) -> None:
    write_records("a.rec", tiny_records(2))
    result = records("split", "a.rec", "--max-bytes", 100, "--to", "part")
    size = offsets_of(tiny_records(2))[1]
    assert result.err == f"DataError: a.rec: byte 0: a record of {size:,} bytes; --max-bytes allows 100\n"
    assert names() == ["a.rec"]


def test_split_refuses_more_chunks_than_records(records: Records) -> None:
    write_records("a.rec", tiny_records(2))
    result = records("split", "a.rec", "--chunks", 3, "--to", "part")
    assert result.err == "ConfigError: a.rec: 2 records are too few for 3 chunks\n"


def test_a_forced_split_leaves_no_chunk_of_an_older_one(records: Records) -> None:
    write_records("a.rec", tiny_records(6))
    records("split", "a.rec", "--chunks", 4, "--to", "part")
    result = records("split", "a.rec", "--chunks", 2, "--to", "part")
    assert result.err == "ConfigError: part_00000.idx: exists already; --force writes over it\n"
    assert records("split", "a.rec", "--chunks", 2, "--to", "part", "--force").exit_code == 0
    assert names() == ["a.rec", "part_00000.idx", "part_00000.rec", "part_00001.idx", "part_00001.rec"]


def test_split_cuts_no_chunk_that_has_the_prefix_itself(records: Records) -> None:
    write_records("part_00000.rec", tiny_records(6))
    result = records("split", "part_00000.rec", "--chunks", 2, "--to", "part", "--force")
    assert result.err == "ConfigError: part_00000.rec: is an input too; an output needs another name\n"


def test_reindex_writes_the_index_of_each_file(records: Records) -> None:
    write_records("a.rec", tiny_records(3)[::-1])
    write_records("no suffix", tiny_records(2))
    assert records("reindex", "a.rec", "no suffix").out == "a.idx: 3 records\nno suffix.idx: 2 records\n"
    assert Path("a.idx").read_text() == index_of(tiny_records(3)[::-1])
    assert Path("no suffix.idx").read_text() == index_of(tiny_records(2))


def test_reindex_refuses_two_files_with_one_index(records: Records) -> None:
    write_records("a.rec", tiny_records(3))
    write_records("a", tiny_records(2))
    for others in (["a"], ["a.rec"]):
        assert records("reindex", "a.rec", *others).err == "ConfigError: a.idx: two outputs would have this name\n"
    assert names() == ["a", "a.rec"]


def test_reindex_refuses_doubled_ids_and_keeps_the_old_index(records: Records) -> None:
    write_records("a.rec", [*tiny_records(2), *tiny_records(1)])
    Path("a.idx").write_text("old")
    place = offsets_of(tiny_records(2))[2]
    assert records("reindex", "a.rec").err == "ConfigError: a.idx: exists already; --force writes over it\n"
    assert records("reindex", "a.rec", "--force").err.startswith(
        f"DataError: a.rec: byte {place:,}: record id 0 is there twice"
    )
    assert Path("a.idx").read_text() == "old"


FILTERS = {
    "labels": (["--labels", "0,2-3"], [0, 2, 3, 5, 6, 8]),
    "other labels": (["--not-labels", "0-1"], [2, 5, 8]),
    "ids": (["--ids", "ids.txt"], [1, 8]),
    "size": (["--min-edge", "18"], [6, 7, 8]),
    "all of them": (["--labels", "0-1", "--not-labels", "1", "--min-edge", "15"], [3, 6]),
    "nothing": (["--labels", "77"], []),
}


@pytest.mark.parametrize(("criteria", "kept"), FILTERS.values(), ids=FILTERS.keys())
def test_filter_keeps_what_matches(records: Records, criteria: list[str], kept: list[int]) -> None:
    originals = tiny_records(9)
    write_records("a.rec", originals)
    Path("ids.txt").write_text("8\n\n1\t0.5\tx.JPEG\n77\n")
    result = records("filter", "a.rec", "--to", "b", *criteria)
    expected = [originals[index] for index in kept]
    assert Path("b.rec").read_bytes() == encode(expected)
    assert Path("b.idx").read_text() == index_of(expected)
    assert f"kept {len(kept)}, left out {9 - len(kept)}, " in result.out


def test_filter_tells_why_records_were_left_out(records: Records) -> None:
    write_records("a.rec", [*tiny_records(4), ImageRecord(9, (0.0,), b"")])
    result = records("filter", "a.rec", "--to", "b", "--labels", 0, "--min-edge", "13")
    assert result.out.splitlines()[1] == "kept 1, left out 4, 1 by edge, 2 by label, 1 by no readable image"


def test_of_several_labels_one_is_enough_to_be_kept_or_left_out(records: Records) -> None:
    write_records("a.rec", [ImageRecord(0, (1.0, 2.0), b""), ImageRecord(1, (3.0, 4.0), b"")])
    records("filter", "a.rec", "--to", "with", "--labels", 2)
    records("filter", "a.rec", "--to", "without", "--not-labels", 2)
    assert [record.record_id for record in read_records("with.rec")] == [0]
    assert [record.record_id for record in read_records("without.rec")] == [1]


def test_filter_wants_to_be_asked_for_something(records: Records) -> None:
    write_records("a.rec", tiny_records(1))
    assert records("filter", "a.rec", "--to", "b").err.startswith("ConfigError: filter: nothing is asked for")


@pytest.mark.parametrize("text", ["x\n", "-1\n", "1" * 5000 + "\n"])
def test_filter_names_a_line_without_an_id(records: Records, text: str) -> None:
    write_records("a.rec", tiny_records(1))
    Path("ids").write_text("4\n" + text)
    result = records("filter", "a.rec", "--to", "b", "--ids", "ids")
    assert result.err == "DataError: ids: line 2: begins with no record id\n"


DRY_RUNS = {
    "merge": ["merge", "out", "a.rec"],
    "split": ["split", "a.rec", "--chunks", "2", "--to", "out"],
    "reindex": ["reindex", "a.rec"],
    "filter": ["filter", "a.rec", "--to", "out", "--labels", "1"],
}


@pytest.mark.parametrize("command", DRY_RUNS.values(), ids=DRY_RUNS.keys())
def test_a_dry_run_says_what_the_real_one_writes_and_writes_nothing(records: Records, command: list[str]) -> None:
    write_records("a.rec", tiny_records(4))
    dry = records(*command, "--dry-run")
    assert names() == ["a.rec"]
    real = records(*command)
    assert dry.exit_code == real.exit_code == 0
    assert dry.out.replace("would write ", "") == real.out
    assert records(*command, "--dry-run").err.endswith("exists already; --force writes over it\n")
