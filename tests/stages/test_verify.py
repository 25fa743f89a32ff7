"""verify: a dataset that is not as planned is refused, and the report says what is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from imagenet_ops.domain.recordio import ImageRecord, encode_record, iterate_records, pack_image, unpack_image
from imagenet_ops.errors import DataError, ObjectNotFound
from imagenet_ops.manifests import ClassReport, DatasetReport, DroppedClass
from tests.builders import jpeg, picture, png
from tests.fakes import MemoryStore
from tests.tiny_dataset import Pipeline, copy_of, run_tiny, tiny_classes, with_damage


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    return run_tiny(tmp_path_factory.mktemp("packed"), last_stage="pack_recordio")


@pytest.fixture
def dataset(packed: Pipeline) -> Pipeline:
    """A packed dataset that may be damaged; its store is its own."""
    copy = Pipeline(copy_of(packed.store), packed.context.dataset)
    copy.keys = dict(packed.keys)
    return copy


def change(dataset: Pipeline, name: str, edit: Callable[[bytes], bytes]) -> None:
    key = dataset.data_key("pack_recordio", name)
    before = dataset.store.get(key)
    after = edit(before)
    assert after != before
    dataset.store.put(key, after)


def records(rec: bytes) -> list[ImageRecord]:
    """The image records of a chunk."""
    position = 0

    def read(num_bytes: int) -> bytes:
        nonlocal position
        piece = rec[position : position + num_bytes]
        position += num_bytes
        return piece

    return [unpack_image(payload, "rec") for _, payload in iterate_records(read, "rec")]


def rec_of(images: list[ImageRecord]) -> bytes:
    return b"".join(encode_record(pack_image(image)) for image in images)


def idx_of(images: list[ImageRecord]) -> bytes:
    lines, offset = [], 0
    for image in images:
        lines.append(f"{image.record_id}\t{offset}\n")
        offset += len(rec_of([image]))
    return "".join(lines).encode()


def without_last(images: list[ImageRecord]) -> list[ImageRecord]:
    return images[:-1]


def with_another_label(images: list[ImageRecord]) -> list[ImageRecord]:
    first = images[0]
    return [ImageRecord(first.record_id, (1.0 - first.labels[0],), first.image), *images[1:]]


def with_two_swapped(images: list[ImageRecord]) -> list[ImageRecord]:
    return [images[1], images[0], *images[2:]]


def with_one_twice(images: list[ImageRecord]) -> list[ImageRecord]:
    return [*images, images[0]]


def with_another_image(images: list[ImageRecord]) -> list[ImageRecord]:
    return [ImageRecord(images[0].record_id, images[0].labels, jpeg(12, 12, seed=5)), *images[1:]]


def with_text_for_an_image(images: list[ImageRecord]) -> list[ImageRecord]:
    return [ImageRecord(images[0].record_id, images[0].labels, b"a text"), *images[1:]]


def test_a_packed_dataset_as_it_is_verifies(dataset: Pipeline) -> None:
    dataset.run("verify")


@pytest.mark.parametrize("where", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_a_flipped_byte_in_a_chunk_is_found_wherever_it_is(dataset: Pipeline, where: float) -> None:
    def flip(data: bytes) -> bytes:
        position = round(where * (len(data) - 1))
        return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]

    change(dataset, "train_00001.rec", flip)
    with pytest.raises(DataError, match="train_00001"):
        dataset.run("verify")


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (without_last, r"number of records: expected 4, found 3"),
        (with_another_label, r"record 0: expected \(0, \d\), found \(0, \d\.0\)"),
        (with_two_swapped, r"record 0: expected \(0, \d\), found \(1, \d\.0\)"),
        (with_one_twice, r"record 4: expected None, found \(0, "),
        (with_another_image, r"SHA-256: expected '[0-9a-f]{64}', found"),
        (with_text_for_an_image, r"record 0: an image expected, found: text"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_records_that_are_not_the_planned_ones_are_found_even_when_the_index_fits_them(
    dataset: Pipeline, edit: Callable[[list[ImageRecord]], list[ImageRecord]], told: str
) -> None:
    images = edit(records(dataset.data("pack_recordio", "train_00000.rec")))
    change(dataset, "train_00000.rec", lambda _: rec_of(images))
    dataset.store.put(dataset.data_key("pack_recordio", "train_00000.idx"), idx_of(images))
    with pytest.raises(DataError, match=f"chunk train_00000: {told}"):
        dataset.run("verify")


@pytest.mark.parametrize(
    ("name", "edit", "told"),
    [
        ("train_00000.rec", lambda data: data[:-4], "data/train_00000.rec: byte .*: record cut short"),
        ("train_00000.rec", lambda data: data + b"\0\0\0", "data/train_00000.rec: byte .*: record cut short"),
        ("train_00000.rec", lambda data: b"", "number of records: expected 4, found 0"),
        ("train_00000.idx", lambda data: data.replace(b"0\t0\n", b"0\t4\n", 1), "train_00000: index: expected"),
        ("train_00000.idx", lambda data: data + b"9\t99\n", "train_00000: index: expected"),
        ("train_00000.idx", lambda data: data.replace(b"0\t0\n", b"0\tzero\n", 1), "data/train_00000.idx: a line of"),
        ("train_00000.idx", lambda data: data[:-1], "SHA-256 of data/train_00000.idx"),
        ("train_00000.lst", lambda data: data.replace(b".000000", b".500000", 1), "train_00000: list: expected"),
        ("train_00000.lst", lambda data: data.split(b"\n", 1)[1], "train_00000: list: expected"),
        ("train_00000.lst", lambda data: data.replace(b"\t", b" ", 1), "data/train_00000.lst: a line of"),
        ("train_00000.lst", lambda data: data.replace(b"JPEG", b"JPEF", 1), "SHA-256 of data/train_00000.lst"),
        ("train_00000.lst", lambda data: b"\xff" + data[1:], "data/train_00000.lst: a line of"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_any_damage_to_a_file_of_a_chunk_is_an_error_that_names_it(
    dataset: Pipeline, name: str, edit: Callable[[bytes], bytes], told: str
) -> None:
    change(dataset, name, edit)
    with pytest.raises(DataError, match=told):
        dataset.run("verify")


def test_a_chunk_in_the_place_of_another_is_found(dataset: Pipeline) -> None:
    for end in ("rec", "idx", "lst"):
        place = dataset.data_key("pack_recordio", f"train_00000.{end}")
        dataset.store.put(place, dataset.data("pack_recordio", f"train_00001.{end}"))
    with pytest.raises(DataError, match="chunk train_00000: list: expected"):
        dataset.run("verify")


@pytest.mark.parametrize("name", ["train_00000.rec", "train_00000.idx", "plan_train_00000.parquet"])
def test_a_file_that_is_gone_is_an_error_that_names_it(dataset: Pipeline, name: str) -> None:
    key = dataset.data_key("pack_recordio", name)
    dataset.store.delete(key)
    with pytest.raises(ObjectNotFound, match=key):
        dataset.run("verify")


def test_a_dataset_that_was_refused_has_no_report(dataset: Pipeline) -> None:
    change(dataset, "train_00000.rec", lambda data: data[:-4])
    with pytest.raises(DataError):
        dataset.run("verify")
    assert not [info.key for info in dataset.store.list("tiny/verify")]


def test_the_report_counts_what_was_read_and_what_was_left_out(tmp_path: Path) -> None:
    classes = tiny_classes()
    classes["n02"]["n02_0.JPEG"] = jpeg(64, 64)[:-100]
    names = tmp_path / "names.tsv"
    names.write_text("n01\tbee\nn03\tant\n", encoding="utf-8")
    pipeline = run_tiny(
        tmp_path, classes, max_skipped_fraction=0.5, validation_per_class=1, synset_names={"url": names.as_uri()}
    )
    report: DatasetReport = pipeline.manifest("verify", DatasetReport)
    assert (report.num_classes_kept, report.num_classes_dropped, report.num_chunks) == (2, 1, 3)
    assert report.num_train + report.num_validation == 11
    assert report.num_rejected_by_reason == {"empty": 1, "text": 1}
    assert report.num_skipped_by_reason == {"JPEG cut short": 1}
    assert report.dropped == [DroppedClass(synset="n03", name="ant", num_images=2)]
    bee, other = report.classes
    assert bee == ClassReport(label=0, synset="n01", name="bee", num_train=5, num_validation=1)
    assert (other.label, other.synset, other.name, other.num_train + other.num_validation) == (1, "n02", "n02", 5)
    chunks = [f"{name}.rec" for name in ("train_00000", "train_00001", "validation_00000")]
    assert report.num_bytes == sum(len(pipeline.data("pack_recordio", name)) for name in chunks)


def test_sizes_in_the_report_are_those_of_the_stored_images(tmp_path: Path) -> None:
    sizes = [(12, 12), (24, 12), (12, 18), (24, 24)]
    classes = {"n01": {str(number): jpeg(*size, number) for number, size in enumerate(sizes)}}
    pipeline = run_tiny(tmp_path, classes, validation_per_class=1)
    report: DatasetReport = pipeline.manifest("verify", DatasetReport)
    stored = [(12, 12), (24, 12), (12, 18), (12, 12)]
    for found, edges in (
        (report.width_pixels, [size[0] for size in stored]),
        (report.height_pixels, [size[1] for size in stored]),
    ):
        assert (found.least, found.mean, found.greatest) == (min(edges), sum(edges) / 4, max(edges))
    lengths = [
        len(image.image)
        for name in ("train_00000", "train_00001", "validation_00000")
        for image in records(pipeline.data("pack_recordio", f"{name}.rec"))
    ]
    found = report.record_bytes
    assert (found.least, found.mean, found.greatest) == (min(lengths), round(sum(lengths) / 4, 2), max(lengths))


def test_mean_and_standard_deviation_are_numpys_over_all_pixels_of_both_splits(tmp_path: Path) -> None:
    """Lossless images that need no resizing, so that numpy sees the pixels that were measured."""
    edges = [(12, 12), (40, 12), (12, 25), (13, 12), (12, 12)]
    classes = {"n01": {str(seed): png(*size, seed) for seed, size in enumerate(edges)}}
    report: DatasetReport = run_tiny(tmp_path, classes, store=MemoryStore()).manifest("verify", DatasetReport)
    pixels = np.concatenate([picture(*size, seed).reshape(-1, 3) for seed, size in enumerate(edges)]).astype(float)
    assert report.channel_mean == pytest.approx(pixels.mean(axis=0), abs=5.1e-5)
    assert report.channel_std == pytest.approx(pixels.std(axis=0), abs=5.1e-5)


def test_too_large_a_share_of_skipped_records_fails_with_the_reasons_and_the_list(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        run_tiny(tmp_path, with_damage(), max_skipped_fraction=0.2)
    first, *listed, last, advice = str(caught.value).splitlines()
    assert advice.startswith("if that is right, set a larger max_skipped_fraction")
    assert first == (
        "tiny: 3 of 12 records had to be skipped (25.00%; max_skipped_fraction allows 20.00%): "
        "{'JPEG cut short': 2, 'PNG damaged': 1}"
    )
    assert {line.split(": ", 1)[1] for line in listed} == {
        "n01/n01_0.JPEG: JPEG cut short",
        "n02/n02_0.JPEG: JPEG cut short",
        "n02/n02_1.JPEG: PNG damaged",
    }
    assert re.fullmatch(
        r"all of them: tiny/pack_recordio/\w+/data/skipped_\*.parquet, "
        r"copies: tiny/pack_recordio/\w+/data/quarantined_\*.tar",
        last,
    )


def test_the_list_of_skipped_records_ends_after_twenty(tmp_path: Path) -> None:
    classes = {"n01": {str(number): jpeg(64, 64)[:-200] for number in range(30)}}
    with pytest.raises(DataError) as caught:
        run_tiny(tmp_path, classes, num_chunks=3)
    assert len(str(caught.value).splitlines()) == 23


def test_too_many_skipped_records_of_one_class_fail_whatever_the_share(tmp_path: Path) -> None:
    changes = {"max_skipped_fraction": 1.0, "max_skipped_per_class": 1}
    with pytest.raises(DataError) as caught:
        run_tiny(tmp_path, with_damage(), **changes)
    assert str(caught.value).splitlines()[0] == (
        "tiny: more than 1 records (max_skipped_per_class) had to be skipped of {'n02': 2}"
    )
    run_tiny(tmp_path, with_damage(), **(changes | {"max_skipped_per_class": 2}))


def test_a_share_of_skipped_records_at_the_limit_is_accepted(tmp_path: Path) -> None:
    pipeline = run_tiny(tmp_path, with_damage(), max_skipped_fraction=0.25)
    report = pipeline.manifest("verify", DatasetReport)
    assert report.num_train + report.num_validation == 9
