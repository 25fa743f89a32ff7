from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np

from imagenet_ops.domain.recordio import ImageRecord
from tests.builders import jpeg, png
from tests.records.conftest import Records
from tests.records.record_files import offsets_of, tiny_records, write_records

ODD = [
    ImageRecord(2**64 - 1, (math.nan,), b"a text"),
    ImageRecord(5, (math.inf, -0.0, float(np.float32(0.1))), png(20, 10)),
    ImageRecord(5, (-1.0,), jpeg(50, 50)[:-30]),
    ImageRecord(6, (2.0**24,), b""),
]


def test_ls_tells_offset_id_labels_bytes_format_and_size(records: Records) -> None:
    write_records("odd.rec", ODD)
    places, sizes = offsets_of(ODD), [len(record.image) for record in ODD]
    assert records("ls", "odd.rec") == (
        0,
        f"0\t18446744073709551615\tnan\t6\ttext\t-\n"
        f"{places[1]}\t5\tinf,0,0.1\t{sizes[1]}\tpng\t20x10\n"
        f"{places[2]}\t5\t-1\t{sizes[2]}\tjpeg\t50x50\n"
        f"{places[3]}\t6\t16777216\t0\tempty\t-\n",
        "",
    )


def test_ls_of_several_files_tells_the_file_and_limits_each(records: Records) -> None:
    write_records("a.rec", tiny_records(3))
    write_records("b\n.rec", tiny_records(3, first_id=7))
    lines = records("ls", "a.rec", "b\n.rec", "--limit", 1).out.splitlines()
    assert [line.split("\t")[:3] for line in lines] == [["a.rec", "0", "0"], ["b\\n.rec", "0", "7"]]


def test_ls_cuts_a_long_row_of_labels(records: Records) -> None:
    write_records("boxes.rec", [ImageRecord(0, tuple(map(float, range(1000))), jpeg(8, 8))])
    labels = records("ls", "boxes.rec").out.split("\t")[2]
    assert labels == "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,... 1,000 in all"


def test_ls_of_an_empty_file_is_nothing(records: Records) -> None:
    write_records("empty.rec", [])
    assert records("ls", "empty.rec") == (0, "", "")


def test_ls_ends_quietly_when_its_reader_has_seen_enough(records: Records) -> None:
    write_records("a.rec", tiny_records(2) * 5000)
    script = (
        "import argparse, sys; from imagenet_ops.records.commands import add_records_parser;"
        "parser = argparse.ArgumentParser(); add_records_parser(parser.add_subparsers());"
        "options = parser.parse_args(['records', 'ls', 'a.rec']); sys.exit(options.run(options))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith(b"0\t0\t")
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (0, b"")
    process.stderr.close()


def test_cat_writes_every_image_byte_for_byte_and_doubled_ids_under_their_offset(records: Records) -> None:
    write_records("odd.rec", ODD)
    assert records("cat", "odd.rec", "--all", "--to", "out/images").out == "out/images: 4 images\n"
    assert {path.name: path.read_bytes() for path in Path("out/images").iterdir()} == {
        "18446744073709551615_nan.bin": ODD[0].image,
        "5_inf_0_0.1.png": ODD[1].image,
        f"5_-1_at_{offsets_of(ODD)[2]}.jpg": ODD[2].image,
        "6_16777216.bin": b"",
    }


def test_cat_takes_the_ids_that_are_asked_for_and_tells_those_that_are_not_there(records: Records) -> None:
    write_records("a.rec", tiny_records(4))
    result = records("cat", "a.rec", "--id", 3, 1, 2**64 - 1, "--to", "out")
    assert (result.exit_code, result.err) == (1, "DataError: a.rec: no record with id 18446744073709551615\n")
    assert sorted(path.name for path in Path("out").iterdir()) == ["1_1.jpg", "3_0.jpg"]


def test_cat_writes_over_nothing_unless_forced(records: Records) -> None:
    write_records("a.rec", tiny_records(2))
    Path("out").mkdir()
    Path("out/1_1.jpg").write_text("mine")
    result = records("cat", "a.rec", "--all", "--to", "out")
    assert (result.exit_code, result.err) == (
        1,
        "ConfigError: out/1_1.jpg: exists already; --force writes over it\n",
    )
    assert Path("out/1_1.jpg").read_text() == "mine"
    assert records("cat", "a.rec", "--all", "--to", "out", "--force").exit_code == 0
    assert Path("out/1_1.jpg").read_bytes() == tiny_records(2)[1].image


def test_cat_of_one_id_goes_to_stdout_and_nothing_else_with_it(records: Records) -> None:
    write_records("odd.rec", ODD)
    assert records("cat", "odd.rec", "--id", 2**64 - 1, "--to", "-") == (0, "a text", "")
    assert records("cat", "odd.rec", "--id", 7, "--to", "-").err == "DataError: odd.rec: no record with id 7\n"


def test_cat_of_several_images_has_no_way_to_stdout(records: Records) -> None:
    write_records("a.rec", tiny_records(3))
    for which in (["--all"], ["--id", "1", "2"]):
        result = records("cat", "a.rec", *which, "--to", "-")
        assert (result.exit_code, result.err) == (
            1,
            "ConfigError: --to -: takes one id, more images need a folder\n",
        )


def test_show_draws_each_image_and_a_cross_for_one_that_cannot_be_read(records: Records) -> None:
    write_records("odd.rec", [*tiny_records(3), *ODD])
    assert records("show", "odd.rec", "--to", "sheet.png", "--columns", 4) == (
        0,
        "sheet.png: 7 images, 3 of them unreadable\n",
        "",
    )
    sheet = cv2.imread("sheet.png")
    assert sheet is not None
    assert sheet.shape == (2 * 154 + 6, 4 * 134 + 6, 3)


def test_show_draws_the_same_sample_for_the_same_seed(records: Records) -> None:
    write_records("a.rec", tiny_records(30))
    for name, *seed in (("first",), ("one", "--seed", 1), ("again", "--seed", 1), ("two", "--seed", 2)):
        records("show", "a.rec", "--to", f"{name}.png", "--count", 6, *seed)
    sheets = {name: Path(f"{name}.png").read_bytes() for name in ("first", "one", "again", "two")}
    assert sheets["one"] == sheets["again"]
    assert len(set(sheets.values())) == 3


def test_a_sample_as_great_as_the_file_is_all_of_it_in_order(records: Records) -> None:
    write_records("a.rec", tiny_records(5))
    records("show", "a.rec", "--to", "first.png")
    records("show", "a.rec", "--to", "sample.png", "--seed", 3)
    assert Path("first.png").read_bytes() == Path("sample.png").read_bytes()


def test_stats_counts_over_all_files(records: Records) -> None:
    write_records("a.rec", tiny_records(4))
    write_records("odd.rec", ODD)
    result = records("stats", "a.rec", "odd.rec", "--json")
    found = json.loads(result.out)
    sizes = [len(record.image) for record in [*tiny_records(4), *ODD]]
    assert found == {
        "num_records": 8,
        "num_multi_label_records": 1,
        "num_doubled_ids": 1,
        "first_doubled_ids": [5],
        "image_bytes": {"least": 0, "mean": round(sum(sizes) / 8, 1), "greatest": max(sizes)},
        "width": {"least": 16, "mean": round((16 + 17 + 18 + 19 + 20 + 50) / 6, 1), "greatest": 50},
        "height": {"least": 10, "mean": round((12 + 13 + 14 + 15 + 10 + 50) / 6, 1), "greatest": 50},
        "formats": {"jpeg": 5, "no image: text": 1, "png": 1, "no image: empty": 1},
        "labels": {"-1": 1, "0": 3, "0.1": 1, "1": 1, "2": 1, "16777216": 1, "inf": 1, "nan": 1},
        "num_other_labels": 0,
    }
    assert list(found["labels"]) == ["-1", "0", "0.1", "1", "2", "16777216", "inf", "nan"]


def test_stats_for_people_lists_few_labels_one_by_one(records: Records) -> None:
    write_records("a.rec", tiny_records(4))
    assert records("stats", "a.rec").out.splitlines()[-4:] == [
        "labels            3",
        "  0               2",
        "  1               1",
        "  2               1",
    ]


def test_stats_for_people_sums_many_labels_up(records: Records) -> None:
    write_records("a.rec", [ImageRecord(index, (float(index % 40),), b"") for index in range(60)])
    assert records("stats", "a.rec").out.splitlines()[-2:] == [
        "labels            40 in all; --json counts each",
        "records a label   1 to 2, mean 1.5",
    ]


def test_stats_of_no_records_has_no_sizes(records: Records) -> None:
    write_records("empty.rec", [])
    found = json.loads(records("stats", "empty.rec", "--json").out)
    assert (found["num_records"], found["image_bytes"], found["labels"]) == (0, None, {})
