"""One process a home: its lock dies with it, so a kill leaves none behind."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable

from imagenet_ops.local_airflow.errors import AlreadyRunning, LocalAirflowError
from imagenet_ops.local_airflow.postgres import EmbeddedPostgres
from imagenet_ops.local_airflow.process_table import send_signal
from imagenet_ops.local_airflow.processes import read_record, stop_recorded
from imagenet_ops.local_airflow.settings import HomeLayout

# The owner stops its components first; see the grace in processes.py.
_OWNER_SECONDS = 60.0


def lock_home(layout: HomeLayout) -> int:
    """The descriptor that holds the lock until it is closed. Raises AlreadyRunning, which names the address."""
    descriptor = _try_lock(layout)
    if descriptor is None:
        record = read_record(layout)
        address = f"at {record.url}" if record else "and is about to start or has just stopped"
        raise AlreadyRunning(
            f"an Airflow already serves {layout.home} {address}; use it, or stop it with `make down` "
            "(`python -m imagenet_ops.local_airflow down`)"
        )
    return descriptor


def is_locked(layout: HomeLayout) -> bool:
    descriptor = _try_lock(layout)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def stop_home(layout: HomeLayout, say: Callable[[str], None]) -> None:
    """Stops whatever serves the home, or what a killed one left behind. Safe to call again.

    A living owner is asked to stop, and killed when it does not.
    """
    if not layout.home.exists():
        return
    descriptor = _try_lock(layout)
    if descriptor is None:
        descriptor = _take_over(layout, say)
    try:
        stop_leftovers(layout, say)
    finally:
        os.close(descriptor)


def stop_leftovers(layout: HomeLayout, say: Callable[[str], None]) -> None:
    """Ends what a killed process left running here; the caller holds the lock."""
    if record := read_record(layout):
        say("stopping what an earlier start left behind")
        stop_recorded(layout, record)
    if layout.database.exists():
        EmbeddedPostgres(layout.database).stop()


def _take_over(layout: HomeLayout, say: Callable[[str], None]) -> int:
    for signal_number, seconds in ((signal.SIGTERM, _OWNER_SECONDS), (signal.SIGKILL, 10.0)):
        deadline = time.monotonic() + seconds
        asked = False
        while time.monotonic() < deadline:
            if (descriptor := _try_lock(layout)) is not None:
                return descriptor
            # The owner of a start that is very young has not recorded itself yet.
            if not asked and (record := read_record(layout)):
                say(f"asking process {record.owner.pid} to stop")
                send_signal(record.owner, signal_number)
                asked = True
            time.sleep(0.2)
    raise LocalAirflowError(f"{layout.lock} is still locked by another process; `fuser {layout.lock}` names it")


def _try_lock(layout: HomeLayout) -> int | None:
    layout.home.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
