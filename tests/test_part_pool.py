"""The parts of a stage on several processes: one progress for all, and errors that come through."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.errors import ChecksumMismatch, ProcessFailed
from imagenet_ops.manifests import ArchiveManifest
from imagenet_ops.part_pool import build_parts
from imagenet_ops.progress import Task
from imagenet_ops.stages.pack_recordio import STAGE
from imagenet_ops.stages.stage import StageContext, finish, plan_parts
from tests.builders import class_tars, jpeg
from tests.process_life import wait_until
from tests.tiny_dataset import Classes, Pipeline, settings, tiny_classes, write_archives


class CountingProgress:
    """Counts under each title."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    @contextmanager
    def task(self, title: str, total: int | None, unit: str) -> Iterator[Task]:
        yield CountingTask(self.counts, title)


class CountingTask:
    def __init__(self, counts: dict[str, int], title: str) -> None:
        self._counts, self._title = counts, title

    def advance(self, count: int) -> None:
        self._counts[self._title] = self._counts.get(self._title, 0) + count


def sampled(folder: Path, classes: Classes, **changes: object) -> Pipeline:
    paths = write_archives(folder / "source", class_tars(classes))
    return Pipeline(FileStore(folder / "store"), settings(paths, **changes)).run("sample_validation")


def test_all_parts_are_built_and_the_progress_of_all_processes_adds_up(tmp_path: Path) -> None:
    pipeline = sampled(tmp_path, tiny_classes())
    progress = CountingProgress()
    context = StageContext(pipeline.store, pipeline.context.dataset, progress, Path("unused"))
    parts = plan_parts(context, STAGE, pipeline.keys["sample_validation"])
    build_parts(context, STAGE.name, parts, num_processes=2)
    assert progress.counts == {"pack_recordio": 12}
    assert plan_parts(context, STAGE, pipeline.keys["sample_validation"]) == []
    finish(context, STAGE, pipeline.keys["sample_validation"])


def test_an_error_in_a_part_comes_through_as_it_is_and_what_is_built_stays(tmp_path: Path) -> None:
    """The archive lost its end, so only the parts that need it fail."""
    pipeline = sampled(tmp_path, tiny_classes(), num_chunks=8)
    parts = plan_parts(pipeline.context, STAGE, pipeline.keys["sample_validation"])
    (archive,) = pipeline.manifest("download", ArchiveManifest).archives
    key = pipeline.data_key("download", archive.key.removeprefix("data/"))
    whole = pipeline.store.get(key)
    pipeline.store.put(key, whole[: len(whole) // 4])
    with pytest.raises(ChecksumMismatch, match="the archive has changed since it was indexed"):
        build_parts(pipeline.context, STAGE.name, parts, num_processes=3)
    pipeline.store.put(key, whole)
    missing = plan_parts(pipeline.context, STAGE, pipeline.keys["sample_validation"])
    assert set(missing) <= set(parts) and missing
    pipeline.run("verify")


def test_a_killed_process_is_an_error_that_asks_for_another_run(tmp_path: Path) -> None:
    image = jpeg(2000, 2000)
    pipeline = sampled(tmp_path, {"n01": {str(number): image for number in range(42)}})
    parts = plan_parts(pipeline.context, STAGE, pipeline.keys["sample_validation"])

    def kill_one() -> None:
        folder = tmp_path / "store" / "tiny" / "pack_recordio"
        wait_until(lambda: any(folder.glob("*/data/.train_*.partial")), "a process packs")
        child = multiprocessing.active_children()[0].pid
        assert child is not None
        os.kill(child, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(ProcessFailed, match="pack_recordio: a packing process was killed; run again, what is built is"):
        build_parts(pipeline.context, STAGE.name, parts, num_processes=2)
    killer.join()
    assert multiprocessing.active_children() == []
    pipeline.run("pack_recordio")
    assert not list((tmp_path / "store").rglob("*.partial"))
