"""Packs items on several workers and gives the results back in the items' order.

Items go out in blocks, each worker has at most two of them, and a worker stops when its slots are full: so memory is
bounded whatever the images are. A worker that crashes, hangs or takes too much memory is replaced, and its image is
tried once more; the second time it is skipped, with that as the reason.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import NamedTuple

from imagenet_ops.errors import ProcessFailed, StorageError
from imagenet_ops.packer.items import Batch, PackItem
from imagenet_ops.packer.messages import Block, Failed, Filled, Setup
from imagenet_ops.packer.shared_memory import Activity, Heartbeat
from imagenet_ops.packer.worker_process import WorkerProcess, give_back, take_worker

log = logging.getLogger(__name__)
# A block is large enough that handing it over costs little, small enough that the workers end at about the same time.
_ITEMS_PER_BLOCK = 32
_BYTES_PER_BLOCK = 2 * 2**20
_BYTES_OF_UNKNOWN = 2**18
_BLOCKS_PER_WORKER = 2
_SECONDS_BETWEEN_LOOKS = 0.25
_NUM_TRIES = 2
# A worker that ends like this was ended by somebody else: the image it was at has done nothing.
_KILLED_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")


@dataclass(frozen=True)
class Limits:
    """What one image may cost a worker. `max_seconds` is for decoding, resizing and encoding it."""

    max_seconds: float = 60.0
    max_read_seconds: float = 600.0
    max_resident_bytes: int = 2**30


def pack_in_order(
    items: Iterable[PackItem], setup: Setup, num_workers: int, limits: Limits = Limits()
) -> Generator[Batch]:
    """Every item once, in order. The bytes are the same for any number of workers.

    Raises ValueError for fewer workers than one, what reading an item raised, StorageError for a read that does not
    end, and ProcessFailed, naming the image, where a worker is killed from outside or can't start. When the iteration
    is given up, no worker is left behind.
    """
    if num_workers < 1:
        raise ValueError(f"num_workers is at least 1, given {num_workers}")
    with closing(_Packing(items, setup, num_workers, limits)) as packing:
        yield from packing.batches()


class _Arrived(NamedTuple):
    worker: WorkerProcess
    filled: Filled


@dataclass
class _BlockInWork:
    """A block of the plan: what has arrived of it, and how many of its items were given out already."""

    items: list[PackItem]
    arrived: deque[_Arrived] = field(default_factory=deque)
    num_arrived: int = 0
    num_given: int = 0


class _Packing:
    def __init__(self, items: Iterable[PackItem], setup: Setup, num_workers: int, limits: Limits) -> None:
        self._items = iter(items)
        self._setup, self._limits = setup, limits
        self._workers = [take_worker(setup) for _ in range(num_workers)]
        self._replaced: list[WorkerProcess] = []  # their slots may hold what is not given out yet
        self._blocks: dict[int, _BlockInWork] = {}
        self._next_block = 0  # to be given out, and
        self._num_blocks = 0  # to be handed to a worker
        self._next_look = 0.0
        self._is_done = False
        self._last_beats: dict[WorkerProcess, Heartbeat] = {}
        self._failed_tries: Counter[tuple[int, int]] = Counter()

    def close(self) -> None:
        """Ends the workers, and keeps them for another packing where this one came to its end."""
        for worker in self._replaced:
            worker.close()
        for worker in self._workers:
            if self._is_done:
                give_back(worker)
            else:
                worker.close()

    def batches(self) -> Iterator[Batch]:
        self._hand_out()
        while block := self._blocks.get(self._next_block):
            self._receive(0 if block.arrived else _SECONDS_BETWEEN_LOOKS)
            if block.arrived:
                yield from self._give(block)
            if block.num_given == len(block.items):
                del self._blocks[self._next_block]
                self._next_block += 1
        self._is_done = True

    def _give(self, block: _BlockInWork) -> Iterator[Batch]:
        worker, filled = block.arrived.popleft()
        start, block.num_given = block.num_given, block.num_given + len(filled.outcomes)
        data = memoryview(filled.payload or b"") if filled.slot is None else worker.memory.slot(filled.slot)
        yield Batch(block.items[start : block.num_given], filled.outcomes, data[: filled.num_bytes])
        if filled.slot is not None:
            worker.free_slot()

    def _hand_out(self) -> None:
        for _ in range(_BLOCKS_PER_WORKER):
            for worker in self._workers:
                if len(worker.blocks) < _BLOCKS_PER_WORKER and (items := _take_block(self._items)):
                    self._blocks[self._num_blocks] = _BlockInWork(items)
                    worker.send(Block(self._num_blocks, 0, items))
                    self._num_blocks += 1

    def _receive(self, wait_seconds: float) -> None:
        """Takes what has come from the workers and gives them more to do."""
        ready = wait([worker.connection for worker in self._workers], wait_seconds)
        for worker in [worker for worker in self._workers if worker.connection in ready]:
            match worker.receive():
                case Filled() as filled:
                    self._take(worker, filled)
                case Failed(error):
                    raise error
                case None:
                    self._replace(worker)
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
            for worker in self._workers:
                self._look_after(worker)
        self._hand_out()

    def _take(self, worker: WorkerProcess, filled: Filled) -> None:
        block = self._blocks[filled.block]
        block.arrived.append(_Arrived(worker, filled))
        block.num_arrived += len(filled.outcomes)
        if block.num_arrived == len(block.items):
            worker.blocks.popleft()

    def _look_after(self, worker: WorkerProcess) -> None:
        """Stops a worker that was at the same image for too long, seen twice, or that takes too much memory."""
        beat, limits = worker.heartbeat(), self._limits
        if worker.stopped or not worker.blocks:
            return
        if beat.activity == Activity.TRANSCODING and worker.resident_bytes() > limits.max_resident_bytes:
            worker.stop(beat, f"needs more than {limits.max_resident_bytes:,} bytes of memory")
        if self._last_beats.get(worker) == beat:
            if beat.activity == Activity.TRANSCODING and beat.seconds > limits.max_seconds:
                worker.stop(beat, f"takes longer than {limits.max_seconds:g} s")
            if beat.activity == Activity.READING and beat.seconds > limits.max_read_seconds:
                raise StorageError(f"nothing could be read for {beat.seconds:.0f} s: {self._describe(worker)}")
        self._last_beats[worker] = beat

    def _replace(self, worker: WorkerProcess) -> None:
        """A worker is gone: another one goes on behind what has arrived."""
        end = worker.describe_end()
        beat, reason = worker.stopped or (worker.heartbeat(), f"decoder {end}")
        if not worker.stopped and (beat.activity != Activity.TRANSCODING or end.endswith(_KILLED_FROM_OUTSIDE)):
            raise ProcessFailed(f"packing worker {worker.pid} {end} {self._describe(worker)}; run again")
        self._count_failure(worker, beat, reason)
        self._workers.remove(worker)
        self._replaced.append(worker)
        fresh = take_worker(self._setup)
        self._workers.append(fresh)
        for number in [block.number for block in worker.blocks]:
            block = self._blocks[number]
            fresh.send(Block(number, block.num_arrived, block.items[block.num_arrived :]))

    def _count_failure(self, worker: WorkerProcess, beat: Heartbeat, reason: str) -> None:
        block = self._blocks.get(beat.block)
        if block is None or beat.position < block.num_arrived:
            return  # it came to its end after all, between the last look and the kill
        item = block.items[beat.position]
        self._failed_tries[beat.block, beat.position] += 1
        log.warning("packing worker %d: %s: %s", worker.pid, item.name, reason)
        if self._failed_tries[beat.block, beat.position] == _NUM_TRIES:
            block.items[beat.position] = item._replace(refused=reason)

    def _describe(self, worker: WorkerProcess) -> str:
        beat = worker.heartbeat()
        block = self._blocks.get(beat.block)
        if block is None or beat.activity == Activity.WAITING or beat.position >= len(block.items):
            return "between two images"
        return f"at {block.items[beat.position].name}"


def _take_block(items: Iterator[PackItem]) -> list[PackItem]:
    block: list[PackItem] = []
    num_bytes = 0
    while len(block) < _ITEMS_PER_BLOCK and num_bytes < _BYTES_PER_BLOCK and (item := next(items, None)):
        block.append(item)
        num_bytes += _BYTES_OF_UNKNOWN if item.num_bytes is None else item.num_bytes
    return block
