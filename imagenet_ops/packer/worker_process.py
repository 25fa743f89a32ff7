"""A packing worker as its starter sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Pipe
from pathlib import Path

from imagenet_ops.packer.messages import Block, Failed, Filled, Setup
from imagenet_ops.packer.shared_memory import Heartbeat, SharedMemory

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SECONDS_TO_END = 5.0
# mallopt(3): an image's memory is used for the next one, or the kernel would fetch and clear it again for each.
# numpy's algebra is not needed, and its threads double the time that a worker takes to start.
_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**27), "OPENBLAS_NUM_THREADS": "1"}


class _Idle(threading.local):
    """Of this thread: a worker ends with the thread that started it (PR_SET_PDEATHSIG), not with the process."""

    def __init__(self) -> None:
        self.workers: list[WorkerProcess] = []


_idle = _Idle()


def take_worker(setup: Setup) -> WorkerProcess:
    """An idle worker of this thread, or a new one: starting one costs as much as packing a hundred images."""
    while _idle.workers:
        worker = _idle.workers.pop()
        if worker.is_alive():
            break
        worker.close()
    else:
        worker = WorkerProcess()
    worker.begin(setup)
    return worker


def give_back(worker: WorkerProcess) -> None:
    """Keeps a worker that has packed all its blocks for this thread's next setup."""
    worker.end()
    _idle.workers.append(worker)


def close_idle_workers() -> None:
    while _idle.workers:
        _idle.workers.pop().close()


class WorkerProcess:
    """Starts a worker; its blocks come back in the order in which they went out."""

    def __init__(self) -> None:
        self.memory = SharedMemory()
        self.blocks: deque[Block] = deque()
        self.stopped: tuple[Heartbeat, str] | None = None
        self.connection, other_end = Pipe()
        freed, self._freeing = os.pipe()
        descriptors = (other_end.fileno(), self.memory.descriptor, freed)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "imagenet_ops.packer.worker", *map(str, descriptors), str(os.getpid())],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C goes to the starter alone
            env=os.environ | _ENVIRONMENT,
        )
        other_end.close()
        os.close(freed)
        os.close(self.memory.descriptor)

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def begin(self, setup: Setup) -> None:
        with suppress(OSError):
            self.connection.send(setup)

    def end(self) -> None:
        with suppress(OSError):
            self.connection.send(None)

    def send(self, block: Block) -> None:
        """Raises nothing where the worker is gone: that shows when its answer is awaited."""
        self.blocks.append(block)
        with suppress(OSError):
            self.connection.send(block)

    def receive(self) -> Filled | Failed | None:
        """The next message, waiting for it; None where the worker is gone."""
        try:
            message: Filled | Failed = self.connection.recv()
        except (EOFError, OSError):
            return None
        return message

    def free_slot(self) -> None:
        with suppress(OSError):
            os.write(self._freeing, b"\0")

    def heartbeat(self) -> Heartbeat:
        return self.memory.heartbeat()

    def resident_bytes(self) -> int:
        """Memory in use; 0 where the worker is gone."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
        except (OSError, IndexError):
            return 0

    def stop(self, beat: Heartbeat, reason: str) -> None:
        """Kills the worker for what it did at `beat`; what it sent before can still be received."""
        self.stopped = beat, reason
        self._process.kill()

    def describe_end(self) -> str:
        """How the process ended, once its connection is closed."""
        try:
            code = self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def close(self) -> None:
        """Ends the worker and waits for it; safe to call twice."""
        self._process.kill()
        self._process.wait()
        self.connection.close()
        with suppress(OSError):
            os.close(self._freeing)
        self._freeing = -1
