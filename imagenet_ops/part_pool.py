"""The parts of a mapped stage on several processes of this machine, with one progress for all."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from imagenet_ops.adapters.object_store import open_store
from imagenet_ops.adapters.starter_tie import end_with_starter
from imagenet_ops.errors import ProcessFailed
from imagenet_ops.progress import Task
from imagenet_ops.settings import DatasetSettings
from imagenet_ops.stages.pipeline import find_mapped_stage
from imagenet_ops.stages.stage import StageContext, build_part

_SECONDS_BETWEEN_LOOKS = 0.2
_context: StageContext | None = None  # of a process of the pool, set once when it starts


def build_parts(context: StageContext, stage_name: str, part_keys: list[str], num_processes: int) -> None:
    """Builds every part; at the first error the parts not yet begun are dropped and the error is raised.

    Raises ProcessFailed where a process of the pool was killed. Parts that were built stay built.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork of a process that has threads may stop for ever
    counter = spawn.Value("q", 0)
    arguments = (context.store.url, context.dataset, context.trainer_python, counter, os.getpid())
    pool = ProcessPoolExecutor(min(num_processes, len(part_keys)), spawn, _prepare_process, arguments)
    try:
        with context.progress.task(stage_name, None, "items") as task:
            futures = {pool.submit(_build_part, stage_name, part_key) for part_key in part_keys}
            _follow(futures, counter, task)
    except BrokenProcessPool as error:
        raise ProcessFailed(f"{stage_name}: a packing process was killed; run again, what is built is kept") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _follow(pending: set[Future[None]], counter: Synchronized[int], task: Task) -> None:
    shown = 0
    while pending:
        done, pending = wait(pending, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED)
        count = counter.value
        task.advance(count - shown)
        shown = count
        for future in done:
            future.result()


class _SharedProgress:
    """Progress of a process of the pool: adds to the number that the parent shows."""

    def __init__(self, counter: Synchronized[int]) -> None:
        self._counter = counter

    @contextmanager
    def task(self, title: str, total: int | None, unit: str) -> Iterator[Task]:
        yield self

    def advance(self, count: int) -> None:
        with self._counter.get_lock():
            self._counter.value += count


def _prepare_process(
    store_url: str, dataset: DatasetSettings, trainer_python: Path, counter: Synchronized[int], starter_pid: int
) -> None:
    global _context
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once; it is the parent that says a word
    end_with_starter(starter_pid)  # or it would wait for a killed parent for ever
    _context = StageContext(open_store(store_url), dataset, _SharedProgress(counter), trainer_python)


def _build_part(stage_name: str, part_key: str) -> None:
    assert _context is not None
    build_part(_context, find_mapped_stage(stage_name), part_key)
