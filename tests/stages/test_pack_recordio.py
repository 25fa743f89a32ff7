"""pack_recordio: every planned record is written or skipped with a reason, and the three files of a chunk agree."""

from __future__ import annotations

import io
import struct
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from imagenet_ops.errors import ChecksumMismatch, ConfigError
from imagenet_ops.manifests import NO_STATISTICS, ArchiveManifest, Chunk, DatasetManifest
from imagenet_ops.stages import pack_recordio
from imagenet_ops.stages.plan_records import choose_num_chunks_or_refuse
from imagenet_ops.stages.stage import build_part, plan_parts
from tests.builders import class_tars, jpeg, picture, png, tar, tar_member, tar_of
from tests.fakes import MemoryStore
from tests.tiny_dataset import Classes, Pipeline, run_tiny, settings, tiny_classes, with_damage, write_archives

MAGIC = 0xCED7230A


def chunks_of(pipeline: Pipeline) -> list[Chunk]:
    chunks: list[Chunk] = pipeline.manifest("pack_recordio", DatasetManifest).chunks
    return chunks


def table(pipeline: Pipeline, name: str) -> list[dict[str, Any]]:
    return pl.read_parquet(io.BytesIO(pipeline.data("pack_recordio", f"{name}.parquet"))).to_dicts()


def index_lines(pipeline: Pipeline, chunk: Chunk) -> list[tuple[int, int]]:
    lines = pipeline.data("pack_recordio", f"{chunk.name}.idx").decode().splitlines()
    return [(int(record_id), int(offset)) for record_id, offset in (line.split("\t") for line in lines)]


def list_lines(pipeline: Pipeline, chunk: Chunk) -> list[list[str]]:
    text = pipeline.data("pack_recordio", f"{chunk.name}.lst").decode()
    assert text.endswith("\n")
    return [line.split("\t") for line in text[:-1].split("\n")]


def record_at(pipeline: Pipeline, chunk: Chunk, offset: int) -> tuple[int, float, bytes, int]:
    """(id, label, JPEG, offset behind it), read as MXNet lays a whole record out."""
    rec = pipeline.data("pack_recordio", f"{chunk.name}.rec")
    magic, length, flag, label, record_id, second_id = struct.unpack_from("<IIIfQQ", rec, offset)
    assert (magic, length >> 29, flag, second_id) == (MAGIC, 0, 0, 0)
    return record_id, label, rec[offset + 32 : offset + 8 + length], offset + 8 + -(-length // 4) * 4


def pixels_of(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), np.uint8)


def pack(folder: Path, classes: Classes | None = None, **changes: Any) -> Pipeline:
    return run_tiny(folder, classes, "pack_recordio", **changes)


def test_every_planned_record_is_written_or_skipped_with_a_reason(tmp_path: Path) -> None:
    pipeline = pack(tmp_path, with_damage())
    fates: Counter[tuple[str, str]] = Counter()
    reasons: dict[tuple[str, str], str] = {}
    for chunk in chunks_of(pipeline):
        plan, skipped = table(pipeline, f"plan_{chunk.name}"), table(pipeline, f"skipped_{chunk.name}")
        written = {int(line[0]) for line in list_lines(pipeline, chunk)} if chunk.num_records else set()
        assert written.isdisjoint(row["record_id"] for row in skipped)
        assert written | {row["record_id"] for row in skipped} == {row["record_id"] for row in plan}
        assert (chunk.num_planned, chunk.num_records) == (len(plan), len(written))
        assert chunk.num_skipped_by_reason == Counter(row["reason"] for row in skipped)
        fates.update((row["synset"], row["name"]) for row in plan)
        reasons |= {(row["synset"], row["name"]): row["reason"] for row in skipped}
    assert fates == Counter(
        {(synset, f"{synset}_{number}.JPEG"): 1 for synset in ("n01", "n02") for number in range(6)}
    )
    assert reasons == {
        ("n01", "n01_0.JPEG"): "JPEG cut short",
        ("n02", "n02_0.JPEG"): "JPEG cut short",
        ("n02", "n02_1.JPEG"): "PNG damaged",
    }


def test_record_index_and_list_of_a_chunk_agree(tmp_path: Path) -> None:
    pipeline = pack(tmp_path, with_damage())
    for chunk in chunks_of(pipeline):
        index, listed = index_lines(pipeline, chunk), list_lines(pipeline, chunk)
        end = 0
        for (record_id, offset), (listed_id, listed_label, path) in zip(index, listed, strict=True):
            assert offset == end  # each record begins where the one before it ended
            found_id, label, image, end = record_at(pipeline, chunk, offset)
            assert found_id == record_id == int(listed_id)
            assert f"{label:.6f}" == listed_label
            assert path.split("/")[0] == ("n01", "n02")[int(label)]
            assert min(pixels_of(image).shape[:2]) == 12
        assert end == chunk.rec.num_bytes == len(pipeline.data("pack_recordio", f"{chunk.name}.rec"))


def test_a_record_is_the_image_that_its_list_line_names(tmp_path: Path) -> None:
    classes = {"n01": {f"{shade}": png_of_shade(shade) for shade in range(0, 250, 25)}}
    pipeline = pack(tmp_path, classes)
    seen = []
    for chunk in chunks_of(pipeline):
        for (_, offset), (_, _, path) in zip(index_lines(pipeline, chunk), list_lines(pipeline, chunk), strict=True):
            shade = int(path.removeprefix("n01/"))
            assert abs(float(pixels_of(record_at(pipeline, chunk, offset)[2]).mean()) - shade) < 3
            seen.append(shade)
    assert sorted(seen) == list(range(0, 250, 25))


def png_of_shade(shade: int) -> bytes:
    return bytes(cv2.imencode(".png", np.full((16, 16, 3), shade, np.uint8))[1].tobytes())


def test_ids_run_on_over_all_chunks_validation_behind_training(tmp_path: Path) -> None:
    pipeline = pack(tmp_path, num_chunks=3)
    ids: dict[str, list[int]] = {"train": [], "validation": []}
    for chunk in chunks_of(pipeline):
        ids[chunk.split] += [record_id for record_id, _ in index_lines(pipeline, chunk)]
    assert [chunk.name for chunk in chunks_of(pipeline)] == [
        "train_00000", "train_00001", "train_00002", "validation_00000",
    ]  # fmt: skip
    assert [chunk.num_records for chunk in chunks_of(pipeline)] == [3, 3, 2, 4]
    assert ids == {"train": list(range(8)), "validation": list(range(8, 12))}


def test_the_validation_chunks_hold_the_sample_and_the_training_chunks_all_else(tmp_path: Path) -> None:
    pipeline = pack(tmp_path)
    sample = pl.read_parquet(io.BytesIO(pipeline.data("sample_validation", "validation.parquet")))
    sampled = {f"{synset}/{name}" for synset, name in sample.iter_rows()}
    packed: dict[str, set[str]] = {"train": set(), "validation": set()}
    for chunk in chunks_of(pipeline):
        packed[chunk.split] |= {path for _, _, path in list_lines(pipeline, chunk)}
    assert packed["validation"] == sampled
    assert len(packed["train"]) == 8 and not packed["train"] & sampled


def test_every_chunk_is_a_mixture_of_the_classes_in_an_order_that_the_seed_decides(tmp_path: Path) -> None:
    image = jpeg(12, 12)
    classes = {synset: {f"{number:02d}": image for number in range(42)} for synset in ("n01", "n02")}
    orders = []
    for seed in (1, 2):
        pipeline = pack(tmp_path, classes, seed=seed)
        for chunk in chunks_of(pipeline)[:2]:
            labels = [float(label) for _, label, _ in list_lines(pipeline, chunk)]
            assert len(labels) == 40 and 8 <= sum(labels) <= 32
            assert sum(a != b for a, b in pairwise(labels)) > 8  # no long runs of one class
        orders.append([path for chunk in chunks_of(pipeline) for _, _, path in list_lines(pipeline, chunk)])
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]


def test_a_chunk_size_takes_the_place_of_the_number_of_chunks(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (900, 900, 3), dtype=np.uint8)
    large = bytes(cv2.imencode(".png", noise)[1].tobytes())  # about 2.4 MB
    classes = {"n01": {str(number): large for number in range(4)}}
    pipeline = pack(tmp_path, classes, validation_per_class=1, target_chunk_bytes=3 * 2**20, num_chunks=400)
    assert [chunk.name for chunk in chunks_of(pipeline)] == ["train_00000", "train_00001", "validation_00000"]


def test_a_chunk_size_that_makes_too_many_chunks_is_refused_with_the_least_that_works() -> None:
    with pytest.raises(ConfigError) as caught:
        choose_num_chunks_or_refuse(600 * 2**20, 2**20, "train")
    assert str(caught.value) == (
        "target_chunk_bytes: 1,048,576 makes 600 chunks of 629,145,600 bytes of train images; "
        "at most 500 are allowed, so at least 1,258,292"
    )


def test_more_chunks_than_records_become_a_chunk_a_record(tmp_path: Path) -> None:
    assert [chunk.num_records for chunk in chunks_of(pack(tmp_path, num_chunks=50))] == [1] * 8 + [4]


def test_a_chunk_of_which_nothing_is_left_is_empty_and_verifies(tmp_path: Path) -> None:
    classes = {"n01": {str(number): jpeg(64, 64)[:-200] for number in range(4)} | {"good": jpeg(64, 64)}}
    pipeline = run_tiny(tmp_path, classes, "verify", num_chunks=4, validation_per_class=1, max_skipped_fraction=1.0)
    empty = [chunk for chunk in chunks_of(pipeline) if not chunk.num_records]
    assert len(empty) == 4
    assert all((chunk.rec.num_bytes, chunk.idx.num_bytes, chunk.lst.num_bytes) == (0, 0, 0) for chunk in empty)


def test_an_archive_that_became_shorter_fails_and_asks_for_no_skip(tmp_path: Path) -> None:
    paths = write_archives(tmp_path, tar({"n01.tar": tar({str(number): jpeg(16, 16, number) for number in range(5)})}))
    pipeline = Pipeline(MemoryStore(), settings(paths)).run("sample_validation")
    (archive,) = pipeline.manifest("download", ArchiveManifest).archives
    key = pipeline.data_key("download", archive.key.removeprefix("data/"))
    pipeline.store.put(key, pipeline.store.get(key)[:2000])
    with pytest.raises(ChecksumMismatch, match="the archive has changed since it was indexed") as caught:
        pipeline.run("pack_recordio")
    assert key in str(caught.value)


def test_odd_names_are_packed_and_listed_on_one_line_each(tmp_path: Path) -> None:
    names = {
        "tab\there": "tab%09here",
        "new\nline": "new%0Aline",
        "return\rhere": "return%0Dhere",
        "grüße ß 日本.JPEG": "grüße ß 日本.JPEG",
        "50%.JPEG": "50%25.JPEG",
        "next\u0085line \u2028 and paragraph \u2029": "next\u0085line \u2028 and paragraph \u2029",
        "deep/er": "deep/er",
        "' \" \\ $(id)": "' \" \\ $(id)",
    }
    data = jpeg(16, 16)
    members = tar_of(*[(tar_member(name, len(data)), data) for name in names], tar_format="pax")
    paths = write_archives(tmp_path, tar({"n01.tar": members}))
    pipeline = Pipeline(MemoryStore(), settings(paths)).run("verify")
    listed = {line[2] for chunk in chunks_of(pipeline) for line in list_lines(pipeline, chunk)}
    assert listed == {f"n01/{written}" for written in names.values()}


def test_the_moments_are_those_of_the_pixels_that_were_encoded(tmp_path: Path) -> None:
    """Lossless images that need no resizing, so that numpy sees the same pixels."""
    seeds = range(6)
    classes = {"n01": {str(seed): png(12 + seed, 12, seed) for seed in seeds}}
    pipeline = pack(tmp_path, classes)
    pixels = np.concatenate([picture(12 + seed, 12, seed).reshape(-1, 3) for seed in seeds]).astype(np.int64)
    chunks = chunks_of(pipeline)
    statistics = sum((chunk.statistics for chunk in chunks), start=NO_STATISTICS)
    assert statistics.num_measured == 6
    assert statistics.moments.num_pixels == len(pixels)
    assert statistics.moments.sums == pixels.sum(0).tolist()
    assert statistics.moments.sums_of_squares == (pixels**2).sum(0).tolist()


def test_packing_tells_what_it_did_with_the_images(tmp_path: Path) -> None:
    classes = {
        "n01": {
            "small.JPEG": jpeg(10, 9),
            "exact.JPEG": jpeg(12, 30),
            "large.JPEG": jpeg(300, 200),
            "small.PNG": png(11, 10),
            "cut.JPEG": jpeg(300, 200)[:-50],
        }
    }
    pipeline = pack(tmp_path, classes, validation_per_class=1)
    statistics = sum((chunk.statistics for chunk in chunks_of(pipeline)), start=NO_STATISTICS)
    assert statistics.num_by_treatment == {"kept": 2, "reencoded": 1, "shrunk": 1}
    assert statistics.num_smaller == 2
    assert statistics.num_source_bytes == sum(len(data) for name, data in classes["n01"].items() if "cut" not in name)
    assert statistics.short_edge_histogram == {0: 4}
    assert sum(statistics.stored_bytes_histogram.values()) == 4
    planned = [chunk.num_planned_by_label for chunk in chunks_of(pipeline)]
    written = [chunk.num_records_by_label for chunk in chunks_of(pipeline)]
    assert (sum(map(sum, planned)), sum(map(sum, written))) == (5, 4)


def test_skipped_images_are_copied_to_the_quarantine(tmp_path: Path) -> None:
    classes = with_damage()
    pipeline = pack(tmp_path, classes)
    found = {}
    for chunk in chunks_of(pipeline):
        assert (chunk.quarantined is None) == (not chunk.num_skipped_by_class)
        if chunk.quarantined:
            data = pipeline.data("pack_recordio", chunk.quarantined.key.removeprefix("data/"))
            assert len(data) == chunk.quarantined.num_bytes
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                found |= {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    copies = {name.split("_", 3)[-1]: data for name, data in found.items() if name != "skipped.tsv"}
    assert {name.split("/")[0] for name in found} == {"JPEG_cut_short", "PNG_damaged", "skipped.tsv"}
    assert sorted(copies.values()) == sorted(
        [classes["n01"]["n01_0.JPEG"], classes["n02"]["n02_0.JPEG"], classes["n02"]["n02_1.JPEG"]]
    )


def test_the_other_formats_hold_the_same_records(tmp_path: Path) -> None:
    pipeline = pack(tmp_path, with_damage(), also_write=["webdataset", "parquet"])
    for chunk in chunks_of(pipeline):
        assert set(chunk.other_formats) == {"webdataset", "parquet"}
        images = [record_at(pipeline, chunk, offset)[2] for _, offset in index_lines(pipeline, chunk)]
        frame = pl.read_parquet(io.BytesIO(pipeline.data("pack_recordio", f"{chunk.name}.parquet")))
        assert frame["image"].to_list() == images
        with tarfile.open(fileobj=io.BytesIO(pipeline.data("pack_recordio", f"{chunk.name}.tar"))) as tar:
            jpegs = [tar.extractfile(member).read() for member in tar if member.name.endswith(".jpg")]  # type: ignore[union-attr]
        assert jpegs == images
    plain = pack(tmp_path, with_damage())
    for chunk, other in zip(chunks_of(pipeline), chunks_of(plain), strict=True):
        assert (chunk.rec, chunk.idx, chunk.lst) == (other.rec, other.idx, other.lst)


def test_a_machine_with_another_codec_refuses_the_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(MemoryStore(), settings(write_archives(tmp_path, class_tars(tiny_classes()))))
    pipeline.run("sample_validation")
    (part_key, *_) = plan_parts(pipeline.context, pack_recordio.STAGE, pipeline.keys["sample_validation"])
    monkeypatch.setattr(pack_recordio, "codec_of", lambda profile: {"opencv": "4.8.1"})
    with pytest.raises(ConfigError, match=r"codec: this machine has \{'opencv': '4.8.1'\}, the plan was made with"):
        build_part(pipeline.context, pack_recordio.STAGE, part_key)
