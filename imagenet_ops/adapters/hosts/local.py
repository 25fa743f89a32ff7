"""This machine as a host: its processes end with the one that started them, however that ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from imagenet_ops.domain.cluster import ProcessPlan
from imagenet_ops.errors import ProcessFailed

ADDRESS = "127.0.0.1"
_TAIL_BYTES = 4000
_SECONDS_TO_END = 5.0
# Python of the launcher that ties a process's life to its starter's: Linux sends the signal when the starter is gone,
# and the check behind it covers a starter that went in between. No import of ours: it has to be there first.
_TIED_TO_STARTER = (
    "import ctypes, os, signal, sys; "
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


class LocalHost:
    """Starts processes here; each one's output goes to `{log_folder}/{process name}.log`."""

    def __init__(self, log_folder: Path) -> None:
        self._log_folder = log_folder

    def choose_free_port(self) -> int:
        with socket.socket() as listener:
            listener.bind((ADDRESS, 0))
            return int(listener.getsockname()[1])

    def start(self, plan: ProcessPlan) -> LocalProcess:
        log_path = self._log_folder / f"{plan.name}.log"
        try:
            with open(log_path, "wb") as log_file:
                process = subprocess.Popen(
                    [plan.argv[0], "-c", _TIED_TO_STARTER, str(os.getpid()), *plan.argv],
                    env={**_inherited_environment(), **plan.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log_file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise ProcessFailed(f"{plan.name} can't be started: {error}") from error
        return LocalProcess(plan, process, log_path)


def _inherited_environment() -> dict[str, str]:
    """Without Airflow's secrets, and without PORT, which ps-lite would listen on."""
    return {name: value for name, value in os.environ.items() if name != "PORT" and not name.startswith("AIRFLOW")}


class LocalProcess:
    """A process of this machine, leader of its own group."""

    def __init__(self, plan: ProcessPlan, process: subprocess.Popen[bytes], log_path: Path) -> None:
        self.plan = plan
        self._process = process
        self._log_path = log_path

    def poll(self) -> int | None:
        return self._process.poll()

    def stop(self) -> None:
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS_TO_END)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def read_log_tail(self) -> str:
        return self._log_path.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace")

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
