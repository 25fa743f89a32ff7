"""A command from its start to its exit: wall time, CPU time and memory, of it and of every process it starts.

CPU time is that of all descendants, also of those that nobody has waited for when the command ends. Memory is the sum
of the processes' proportional set sizes (a page shared by two counts half for each), looked at five times a second.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SECONDS_BETWEEN_LOOKS = 0.2
_PR_SET_CHILD_SUBREAPER = 36
_SESSION_FIELD = 3  # of /proc/{pid}/stat, counted behind the command's name: state, parent, group, session


@dataclass(frozen=True)
class Usage:
    """What a command took, and what it printed."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    output: str


class CommandFailed(Exception):
    """The command's exit code and the end of its output."""


def measure(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> Usage:
    """Runs the command in `folder`; raises CommandFailed where it does not end with 0.

    What earlier commands wrote is brought to disk first, so that none pays for another.
    """
    os.sync()
    with tempfile.TemporaryFile("w+") as output, _orphans_come_here():
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with _MemoryWatch(process.pid) as watch, _ended_with_us(process.pid):
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            cpu_seconds = _cpu_seconds(usage) + _wait_for_orphans(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        raise CommandFailed(f"{command[0]}: exit code {process.returncode}\n{text[-2000:]}")
    return Usage(seconds, cpu_seconds, watch.peak_bytes, text)


@contextmanager
def _orphans_come_here() -> Iterator[None]:
    """A process whose parent has ended becomes a child of this one, see prctl(2)."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _wait_for_orphans(session: int) -> float:
    """CPU seconds of all that the command has left behind."""
    cpu_seconds = 0.0
    while folders := _processes_of(session):
        for folder in folders:
            try:
                cpu_seconds += _cpu_seconds(os.wait4(int(folder.name), 0)[2])
            except ChildProcessError:  # its parent is an orphan too
                time.sleep(0.01)
    return cpu_seconds


def _cpu_seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


@contextmanager
def _ended_with_us(group: int) -> Iterator[None]:
    """Ctrl-C does not reach another session by itself."""
    try:
        yield
    except BaseException:
        os.killpg(group, signal.SIGKILL)
        raise


class _MemoryWatch:
    """Looks at all processes of a session from a thread, from entering to leaving."""

    def __init__(self, session: int) -> None:
        self.peak_bytes = 0
        self._session = session
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> _MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_LOOKS):
            num_bytes = sum(map(_proportional_bytes, _processes_of(self._session)))
            self.peak_bytes = max(self.peak_bytes, num_bytes)


def _processes_of(session: int) -> list[Path]:
    return [folder for folder in Path("/proc").glob("[0-9]*") if _session_of(folder) == session]


def _session_of(folder: Path) -> int | None:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[_SESSION_FIELD])
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return None


def _proportional_bytes(folder: Path) -> int:
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
