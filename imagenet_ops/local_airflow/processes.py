"""Airflow's components as processes: started apart from us, watched, recorded for whoever must stop them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from imagenet_ops.local_airflow.credentials import write_private_file
from imagenet_ops.local_airflow.environment import MARKER_VARIABLE
from imagenet_ops.local_airflow.errors import ComponentDied, LocalAirflowError
from imagenet_ops.local_airflow.process_table import ProcessIdentity, find_children, identify, stop_family
from imagenet_ops.local_airflow.settings import HomeLayout

API_SERVER = "api-server"
SCHEDULER = "scheduler"
_TAIL_LINES = 30
# Airflow itself needs 3 seconds; the rest is for what tasks have started, which may end its own children first.
_GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class Record:
    """What `processes.json` holds: who serves the home, where, and which processes it has started."""

    marker: str
    url: str
    owner: ProcessIdentity
    components: Mapping[str, ProcessIdentity]


def read_record(layout: HomeLayout) -> Record | None:
    """None when nothing was left behind."""
    try:
        fields = json.loads(layout.processes.read_text())
    except FileNotFoundError:
        return None
    return Record(
        marker=fields["marker"],
        url=fields["url"],
        owner=ProcessIdentity(**fields["owner"]),
        components={name: ProcessIdentity(**identity) for name, identity in fields["components"].items()},
    )


def stop_recorded(layout: HomeLayout, record: Record) -> None:
    """Ends what the record names with all its descendants, then forgets it. Safe to call again.

    A task is interrupted, not failed: the supervisors, which are the scheduler's children, are cut off before they can
    report anything. The next start finds its tasks unfinished and runs them again, also those without retries. The API
    server is cut off too: it has nothing to save, and takes 5 seconds to say goodbye.
    """
    scheduler, api_server = record.components.get(SCHEDULER), record.components.get(API_SERVER)
    supervisors = find_children(scheduler) if scheduler else set()
    stop_family(
        tuple(record.components.values()),
        f"{MARKER_VARIABLE}={record.marker}",
        grace_seconds=_GRACE_SECONDS,
        cut_off=supervisors | ({api_server} if api_server else set()),
    )
    layout.processes.unlink(missing_ok=True)


class Components:
    """The processes of one start. `marker` is unique to it and is in the environment of each of them."""

    def __init__(self, layout: HomeLayout, *, marker: str, url: str) -> None:
        owner = identify(os.getpid())
        assert owner is not None  # we are alive
        self._layout = layout
        self._record = Record(marker, url, owner, {})
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        # Before the first start: were we killed between a start and its record, the marker finds that process.
        self._write_record()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """In a session of its own, so that Ctrl-C in our terminal does not reach it before we stop it in order."""
        process = self._spawn(name, command, environment)
        self._processes[name] = process
        if identity := identify(process.pid):
            self._record = replace(self._record, components={**self._record.components, name: identity})
            self._write_record()

    def run(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Waits for its end; raises LocalAirflowError with the end of its log when it fails."""
        code = self._spawn(name, command, environment).wait()
        if code != 0:
            raise LocalAirflowError(f"{name} ended with code {code}.\n{self._describe_log(name)}")

    def check(self) -> None:
        """Raises ComponentDied when one has ended."""
        for name, process in self._processes.items():
            if (code := process.poll()) is not None:
                raise ComponentDied(f"{name} ended with code {code}.\n{self._describe_log(name)}")

    def stop(self) -> None:
        """Nothing is left when it returns, task processes included. Safe to call again."""
        stop_recorded(self._layout, self._record)
        for process in self._processes.values():
            process.wait()  # takes the exit status, or a zombie would stay as long as we do

    def _spawn(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        path = self._layout.component_log(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as log_file:
            return subprocess.Popen(
                command,
                env=environment,
                cwd=self._layout.home,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _describe_log(self, name: str) -> str:
        path = self._layout.component_log(name)
        return f"The end of {path}:\n{read_tail(path)}"

    def _write_record(self) -> None:
        write_private_file(self._layout.processes, json.dumps(asdict(self._record), indent=2) + "\n")


def read_tail(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(f"    {line}" for line in lines[-_TAIL_LINES:])
