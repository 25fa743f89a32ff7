"""The whole pipeline up to verify: the same bytes again and again, nothing done twice, and a crash leaves no trace."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.errors import DataError
from imagenet_ops.manifests import ArchiveManifest, DatasetManifest, ImageIndex
from tests.builders import class_folders, class_tars, jpeg
from tests.fakes import MemoryStore
from tests.tiny_dataset import (
    Classes,
    Crash,
    CrashingStore,
    Pipeline,
    contents,
    run_tiny,
    settings,
    stage_of,
    tiny_classes,
    write_archives,
)


def chunk_files(pipeline: Pipeline) -> dict[str, bytes]:
    chunks = pipeline.manifest("pack_recordio", DatasetManifest).chunks
    stored = [stored for chunk in chunks for stored in (chunk.rec, chunk.idx, chunk.lst)]
    return {object.key: pipeline.data("pack_recordio", object.key.removeprefix("data/")) for object in stored}


def shuffled(classes: Classes, seed: int) -> dict[str, dict[str, bytes]]:
    generator = random.Random(seed)
    return {
        synset: dict(generator.sample(list(classes[synset].items()), len(classes[synset])))
        for synset in generator.sample(list(classes), len(classes))
    }


def test_a_second_run_in_another_store_gives_the_same_keys_and_bytes(tmp_path: Path) -> None:
    first, second = run_tiny(tmp_path), run_tiny(tmp_path)
    assert contents(first.store) == contents(second.store)
    assert {stage_of(key) for key in contents(first.store)} == {
        "download", "untar", "filter_rare_classes", "sample_validation", "pack_recordio", "verify",
    }  # fmt: skip


def test_two_processes_give_the_same_bytes_as_one(tmp_path: Path) -> None:
    paths = write_archives(tmp_path / "source", class_tars(tiny_classes()))
    alone = Pipeline(MemoryStore(), settings(paths)).run()
    pooled = Pipeline(FileStore(tmp_path / "store"), settings(paths)).run(jobs=2)
    assert contents(pooled.store) == contents(alone.store)


def test_a_second_run_in_the_same_store_writes_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    first = run_tiny(tmp_path / "source", store=store)
    before = list(store.list(""))
    second = run_tiny(tmp_path / "source", store=store)
    assert second.keys == first.keys
    assert list(store.list("")) == before  # sizes and times of modification too


def test_the_order_of_members_in_the_archives_changes_no_chunk(tmp_path: Path) -> None:
    classes = tiny_classes()
    expected = run_tiny(tmp_path / "plain", classes)
    for seed in range(3):
        found = run_tiny(tmp_path / f"shuffled_{seed}", shuffled(classes, seed))
        assert found.manifest("download", ArchiveManifest) != expected.manifest("download", ArchiveManifest)
        assert chunk_files(found) == chunk_files(expected)


def test_class_folders_give_the_same_chunks_as_class_tars(tmp_path: Path) -> None:
    tars = run_tiny(tmp_path / "tars")
    paths = write_archives(tmp_path / "folders", class_folders(tiny_classes()))
    folders = Pipeline(MemoryStore(), settings(paths, layout="class_folders")).run()
    assert chunk_files(folders) == chunk_files(tars)


@pytest.mark.parametrize(
    ("change", "rerun"),
    [
        ({"jpeg_quality": 50}, {"pack_recordio", "verify"}),
        ({"short_edge_pixels": 10}, {"pack_recordio", "verify"}),
        ({"num_chunks": 3}, {"pack_recordio", "verify"}),
        ({"max_skipped_fraction": 0.5}, {"verify"}),
        ({"validation_per_class": 3}, {"sample_validation", "pack_recordio", "verify"}),
        ({"seed": 8}, {"sample_validation", "pack_recordio", "verify"}),
        ({"min_images_per_class": 3}, {"filter_rare_classes"}),  # the same classes stay
        ({"min_images_per_class": 7}, None),  # none stays
        ({"title": "Another title", "licence": "none"}, set()),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
)
def test_another_setting_reruns_only_what_depends_on_it(
    tmp_path: Path, change: dict[str, Any], rerun: set[str] | None
) -> None:
    store = MemoryStore()
    run_tiny(tmp_path, store=store)
    store.writes.clear()
    if rerun is None:
        with pytest.raises(DataError):
            run_tiny(tmp_path, store=store, **change)
    else:
        run_tiny(tmp_path, store=store, **change)
    assert {stage_of(key) for key in store.writes} == (rerun or set())


def test_a_changed_archive_reruns_everything(tmp_path: Path) -> None:
    store = MemoryStore()
    first = run_tiny(tmp_path / "first", store=store)
    classes = tiny_classes()
    classes["n01"]["one_more.JPEG"] = jpeg(20, 20, seed=1000)
    second = run_tiny(tmp_path / "second", classes, store=store)
    assert not set(first.keys.values()) & set(second.keys.values())
    assert second.manifest("untar", ImageIndex).num_images == first.manifest("untar", ImageIndex).num_images + 1


def test_an_archive_that_only_became_younger_reruns_only_the_download(tmp_path: Path) -> None:
    store = MemoryStore()
    (path,) = write_archives(tmp_path, class_tars(tiny_classes()))
    first = Pipeline(store, settings([path])).run()
    path.touch()
    store.writes.clear()
    second = Pipeline(store, settings([path])).run()
    assert {stage_of(key) for key in store.writes} == {"download"}
    assert second.keys["verify"] == first.keys["verify"]


@pytest.mark.parametrize("object_appears", [False, True], ids=["before", "after"])
def test_a_crash_at_any_write_is_mended_by_a_rerun(tmp_path: Path, object_appears: bool) -> None:
    paths = write_archives(tmp_path, class_tars(tiny_classes()))
    undisturbed = MemoryStore()
    Pipeline(undisturbed, settings(paths)).run()
    num_writes = len(undisturbed.writes)
    assert num_writes > 20
    for crash_at in range(1, num_writes + 1):
        store = MemoryStore()
        with pytest.raises(Crash):
            Pipeline(CrashingStore(store, crash_at, object_appears), settings(paths)).run()
        assert len(store.writes) == crash_at - (not object_appears)
        Pipeline(store, settings(paths)).run()
        assert store.objects == undisturbed.objects, f"crash at write {crash_at} of {num_writes}"


def test_a_run_that_crashes_at_every_write_in_turn_comes_to_the_same_end(tmp_path: Path) -> None:
    paths = write_archives(tmp_path, class_tars(tiny_classes()))
    undisturbed = Pipeline(MemoryStore(), settings(paths)).run()
    store = MemoryStore()
    for _ in range(200):
        try:
            Pipeline(CrashingStore(store, 6, object_appears=True), settings(paths)).run()
            break
        except Crash:
            pass
    assert store.objects == contents(undisturbed.store)


def test_a_crash_leaves_nothing_half_written_in_a_folder(tmp_path: Path) -> None:
    paths = write_archives(tmp_path / "source", class_tars(tiny_classes()))
    store = FileStore(tmp_path / "store")
    with pytest.raises(Crash):
        Pipeline(CrashingStore(store, 20, object_appears=False), settings(paths)).run()
    assert [path for path in (tmp_path / "store").rglob("*") if path.name.startswith(".")] == []
    Pipeline(store, settings(paths)).run()
    undisturbed = Pipeline(MemoryStore(), settings(paths)).run()
    assert contents(store) == contents(undisturbed.store)


def test_two_runs_at_once_both_succeed_with_the_same_manifests(tmp_path: Path) -> None:
    paths = write_archives(tmp_path / "source", class_tars(tiny_classes()))
    alone = Pipeline(MemoryStore(), settings(paths)).run()
    store = FileStore(tmp_path / "store")
    pipelines = [Pipeline(store, settings(paths)) for _ in range(3)]
    barrier = threading.Barrier(len(pipelines))
    errors: list[BaseException] = []

    def run(pipeline: Pipeline) -> None:
        barrier.wait()
        try:
            pipeline.run()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(pipeline,)) for pipeline in pipelines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [pipeline.keys for pipeline in pipelines] == [alone.keys] * len(pipelines)
    assert contents(store) == contents(alone.store)
