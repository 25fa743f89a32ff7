"""Whether processes live, seen from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path


def is_alive(pid: int) -> bool:
    """False also for a zombie, which only waits to be collected."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} seconds: {what}"
        time.sleep(0.02)


def wait_until_dead(pids: Iterable[int], seconds: float = 5.0) -> None:
    for pid in pids:
        wait_until(lambda pid=pid: not is_alive(pid), f"process {pid} is gone", seconds)  # type: ignore[misc]


def read_pid(path: Path) -> int:
    """The number that a process writes into a file as soon as it runs, with a newline behind it."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"{path.name} is written")
    return int(path.read_text())
