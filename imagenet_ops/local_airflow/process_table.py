"""Which processes are ours, told from /proc by id and never by name; and their end.

A process is ours when it was recorded, carries our marker in its environment, or descends from one that is ours.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from imagenet_ops.local_airflow.errors import LocalAirflowError

_PROC = Path("/proc")
_KILL_SECONDS = 15.0  # a killed process can stay until its disk access returns


@dataclass(frozen=True)
class ProcessIdentity:
    """`started` is the boot's id and the clock ticks since that boot: a pid that is used again has another one."""

    pid: int
    started: str


@dataclass(frozen=True)
class _Process:
    identity: ProcessIdentity
    parent_pid: int


def identify(pid: int) -> ProcessIdentity | None:
    """None when the process is gone, or a zombie that only waits for its parent."""
    process = _read_process(pid)
    return process.identity if process else None


def is_alive(identity: ProcessIdentity) -> bool:
    return identify(identity.pid) == identity


def send_signal(identity: ProcessIdentity, signal_number: signal.Signals) -> None:
    """Does nothing when the process has ended, even if its pid lives on as another process."""
    if is_alive(identity):
        with suppress(ProcessLookupError):
            os.kill(identity.pid, signal_number)


def find_family(recorded: Iterable[ProcessIdentity], marker: str) -> set[ProcessIdentity]:
    """All living processes that are ours, but not the caller. `marker` is a whole `NAME=value`."""
    processes = {pid: process for pid in list_pids() if (process := _read_process(pid))}
    recorded = set(recorded)
    ours = {pid for pid, process in processes.items() if process.identity in recorded or _has_marker(pid, marker)}
    ours.discard(os.getpid())
    while children := {pid for pid, process in processes.items() if process.parent_pid in ours} - ours:
        ours |= children
    ours.discard(os.getpid())
    return {processes[pid].identity for pid in ours}


def find_children(parent: ProcessIdentity) -> set[ProcessIdentity]:
    """The living processes that it has started itself; none when it has ended."""
    if not is_alive(parent):
        return set()
    processes = (_read_process(pid) for pid in list_pids())
    return {process.identity for process in processes if process and process.parent_pid == parent.pid}


def stop_family(
    recorded: Iterable[ProcessIdentity],
    marker: str,
    *,
    grace_seconds: float,
    cut_off: Iterable[ProcessIdentity] = (),
) -> None:
    """Returns when none is left: each gets SIGTERM once, and after the grace SIGKILL. Safe to call again.

    Those in `cut_off` are killed as soon as the recorded ones have had their SIGTERM, and before any other. Looks
    again and again, for a process may start another while it stops. Raises LocalAirflowError when one outlives SIGKILL.
    """
    known = find_family(recorded, marker) | set(recorded)
    for identity in recorded:
        send_signal(identity, signal.SIGTERM)
    for identity in cut_off:
        send_signal(identity, signal.SIGKILL)
    if _end_all(known, marker, signal.SIGTERM, grace_seconds, signalled=set(recorded)):
        return
    if not _end_all(known, marker, signal.SIGKILL, _KILL_SECONDS, signalled=set()):
        pids = sorted(identity.pid for identity in find_family(known, marker))
        raise LocalAirflowError(f"processes {pids} are still there after SIGKILL")


def _end_all(
    known: set[ProcessIdentity],
    marker: str,
    signal_number: signal.Signals,
    seconds: float,
    *,
    signalled: set[ProcessIdentity],
) -> bool:
    """Whether all have ended in time. Adds to `known`: a child is ours after its parent has gone, too."""
    deadline = time.monotonic() + seconds
    while family := find_family(known, marker):
        known |= family
        for identity in family - signalled:
            send_signal(identity, signal_number)
        signalled |= family
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def list_pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]


def _read_process(pid: int) -> _Process | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold spaces and brackets; see proc(5)
    state, parent_pid, start_ticks = fields[0], int(fields[1]), fields[19]
    if state in "ZX":
        return None
    return _Process(ProcessIdentity(pid, f"{_boot_id()}/{start_ticks}"), parent_pid)


def _has_marker(pid: int, marker: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:  # another user's process, or gone
        return False
    return marker.encode() in environment.split(b"\0")


@cache
def _boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
