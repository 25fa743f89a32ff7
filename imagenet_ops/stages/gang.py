"""A gang runs whole or not at all: all processes start, and when one ends before its time the others are stopped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from imagenet_ops.adapters.hosts import Host, RunningProcess
from imagenet_ops.domain.cluster import GangPlan
from imagenet_ops.errors import ProcessFailed

log = logging.getLogger(__name__)
_SECONDS_BETWEEN_POLLS = 0.5
# The scheduler and the servers leave by themselves when the last worker has said goodbye; it may end a little later.
_SECONDS_TO_FOLLOW = 30.0


def run_gang(plan: GangPlan, hosts: Mapping[str, Host], on_poll: Callable[[], None]) -> None:
    """Returns when every worker has ended well; nothing of the gang is left then, nor after any error.

    `on_poll` is called about twice a second. Raises ProcessFailed, with the end of its log, for the first process that
    ended badly, or for a scheduler or server that left before the workers.
    """
    running: list[RunningProcess] = []
    try:
        for process in plan.processes:
            running.append(hosts[process.host].start(process))
        log.info("started %s", ", ".join(process.plan.name for process in running))
        first_left_at: float | None = None
        while _workers_run(running):
            on_poll()
            time.sleep(_SECONDS_BETWEEN_POLLS)
            if leaver := _first_to_leave(running):
                first_left_at = first_left_at or time.monotonic()
                if time.monotonic() - first_left_at > _SECONDS_TO_FOLLOW:
                    raise ProcessFailed(_describe(leaver, "left before the workers"))
        on_poll()
    finally:
        _stop_all(running)


def _workers_run(running: list[RunningProcess]) -> bool:
    codes = {process: process.poll() for process in running}
    for process, code in codes.items():
        if code not in (None, 0):
            raise ProcessFailed(_describe(process, f"ended with exit code {code}"))
    return any(code is None for process, code in codes.items() if process.plan.role == "worker")


def _first_to_leave(running: list[RunningProcess]) -> RunningProcess | None:
    return next((process for process in running if process.plan.role != "worker" and process.poll() == 0), None)


def _describe(process: RunningProcess, what: str) -> str:
    return f"{process.plan.name} on {process.plan.host} {what}; the end of its log:\n{process.read_log_tail()}"


def _stop_all(running: list[RunningProcess]) -> None:
    if running:
        with ThreadPoolExecutor(len(running)) as pool:
            list(pool.map(lambda process: process.stop(), running))
