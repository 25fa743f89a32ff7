"""How a stage tells how far it is: a bar on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

log = logging.getLogger(__name__)
_SECONDS_BETWEEN_LINES = 10.0


class Task(Protocol):
    """One piece of work under way."""

    def advance(self, count: int) -> None: ...


class Progress(Protocol):
    """Makes a Task for the length of a block; `total` may be unknown."""

    def task(self, title: str, total: int | None, unit: str) -> AbstractContextManager[Task]: ...


def choose_progress() -> Progress:
    """A bar where standard error is a terminal; there the log's lines below WARNING would tear it, and are left out."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return LogProgress()
    logging.getLogger().setLevel(logging.WARNING)
    return TerminalProgress(console)


class LogProgress:
    """A line every ten seconds, and one at the end with the rate."""

    @contextmanager
    def task(self, title: str, total: int | None, unit: str) -> Iterator[Task]:
        task = _LogTask(title, total, unit)
        yield task
        task.report("done")


class _LogTask:
    def __init__(self, title: str, total: int | None, unit: str) -> None:
        self._title, self._total, self._unit = title, total, unit
        self._count = 0
        self._start = self._last = time.monotonic()

    def advance(self, count: int) -> None:
        self._count += count
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self.report("so far")

    def report(self, state: str) -> None:
        seconds = max(time.monotonic() - self._start, 1e-9)
        of_total = f" of {self._total:,}" if self._total is not None else ""
        rate = self._count / seconds
        log.info("%s: %s%s %s %s, %.3g/s", self._title, f"{self._count:,}", of_total, self._unit, state, rate)


class TerminalProgress:
    """A bar on the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def task(self, title: str, total: int | None, unit: str) -> Iterator[Task]:
        columns = (
            TextColumn("{task.description:<20}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with RichProgress(*columns, console=self._console) as bars:
            yield _BarTask(bars, bars.add_task(title, total=total))


class _BarTask:
    def __init__(self, bars: RichProgress, task_id: TaskID) -> None:
        self._bars, self._task_id = bars, task_id

    def advance(self, count: int) -> None:
        self._bars.advance(self._task_id, count)
