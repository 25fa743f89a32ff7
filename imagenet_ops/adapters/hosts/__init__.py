"""Machines that run a gang's processes."""

from __future__ import annotations

from typing import Protocol

from imagenet_ops.domain.cluster import ProcessPlan


class RunningProcess(Protocol):
    """A process that was started."""

    plan: ProcessPlan

    def poll(self) -> int | None:
        """The exit code, or None while it runs; a death by signal N is -N."""

    def stop(self) -> None:
        """Ends it and all that it started; returns when nothing of it is left. A second call does nothing."""

    def read_log_tail(self) -> str:
        """The end of what it printed."""


class Host(Protocol):
    """One machine."""

    def choose_free_port(self) -> int:
        """A port that nothing listens on just now."""

    def start(self, plan: ProcessPlan) -> RunningProcess:
        """Starts a process in a session of its own. Raises ProcessFailed where it can't be started."""
