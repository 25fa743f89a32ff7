"""The local Airflow as one thing: a database and four components that start and stop together."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from imagenet_ops.local_airflow.credentials import USERNAME, load_or_create_credentials, write_private_file
from imagenet_ops.local_airflow.environment import HOST, build_environment, build_passwords
from imagenet_ops.local_airflow.health import wait_until_healthy
from imagenet_ops.local_airflow.home_lock import lock_home, stop_leftovers
from imagenet_ops.local_airflow.port import choose_port
from imagenet_ops.local_airflow.postgres import EmbeddedPostgres
from imagenet_ops.local_airflow.processes import API_SERVER, SCHEDULER, Components
from imagenet_ops.local_airflow.settings import HomeLayout, LocalAirflowSettings

if TYPE_CHECKING:
    from imagenet_ops.local_airflow.rest import AirflowRest

log = logging.getLogger(__name__)
Say = Callable[[str], None]

# Logs are read from the shared folder; the log servers' fixed ports would let only one Airflow a machine run.
_COMPONENTS = {
    API_SERVER: ("api-server",),
    SCHEDULER: ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
_HEALTHY_SECONDS = 300.0  # half a minute on two idle cores; this much on a busy machine


class LocalAirflow:
    """A context manager; what it started is gone when the block is left, however it is left.

    Should this process be killed, the next start in the same home, or `stop_home`, cleans up after it.
    """

    def __init__(self, settings: LocalAirflowSettings) -> None:
        self._settings = settings
        self._layout = HomeLayout(settings.home)
        self._lock: int | None = None
        self._postgres: EmbeddedPostgres | None = None
        self._components: Components | None = None
        self.username = USERNAME
        self.password = ""
        self.url = ""
        self.started_at = datetime.now(UTC)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self, say: Say = log.info) -> None:
        """Returns when all is healthy, or raises with nothing left running; tells each step to `say`.

        Raises AlreadyRunning when another process serves this home, ComponentDied, StartTimedOut.
        """
        try:
            self._lock = lock_home(self._layout)
            stop_leftovers(self._layout, say)
            self._start(say)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Safe to call again, and after a start that failed."""
        with ExitStack() as last_first:  # each is tried, even when the one before it raises
            if self._lock is not None:
                last_first.callback(os.close, self._lock)
            if self._postgres:
                last_first.callback(self._postgres.stop)
            if self._components:
                last_first.callback(self._components.stop)
            self._components = self._postgres = self._lock = None

    def check(self) -> None:
        """Raises ComponentDied, with the end of its log, when a component has ended."""
        if self._components:
            self._components.check()

    def rest(self) -> AirflowRest:
        """A client with the rights of the admin; close it, or use it in a `with`."""
        from imagenet_ops.local_airflow.rest import AirflowRest

        return AirflowRest(self.url, self.username, self.password)

    def _start(self, say: Say) -> None:
        settings = replace(self._settings, port=choose_port(self._settings.port))
        if self._settings.port not in (0, settings.port):
            say(f"port {self._settings.port} is taken; using {settings.port}")
        self.url = f"http://{HOST}:{settings.port}"
        credentials = load_or_create_credentials(self._layout.secrets)
        self.password = credentials.password
        write_private_file(self._layout.passwords, build_passwords(credentials))

        say("starting the database")
        self._postgres = EmbeddedPostgres(self._layout.database)
        self._postgres.start()

        marker = secrets.token_hex(16)
        scripts_folder = Path(sys.executable).parent  # not resolved: a venv's python is a link out of it
        environment = build_environment(
            settings,
            credentials,
            database_url=self._postgres.url,
            scripts_folder=scripts_folder,
            marker=marker,
            base=os.environ,
        )
        self._components = Components(self._layout, marker=marker, url=self.url)
        program = str(scripts_folder / "airflow")
        self._migrate(self._components, self._postgres, program, environment, say)
        self._start_components(self._components, program, environment, say)

    def _migrate(
        self, components: Components, postgres: EmbeddedPostgres, program: str, environment: dict[str, str], say: Say
    ) -> None:
        # Asking Airflow whether there is something to do takes as long as doing it.
        stamp = f"{version('apache-airflow')} {postgres.system_identifier}\n"
        path = self._layout.database_migrated
        if path.exists() and path.read_text() == stamp:
            return
        say("creating the tables")
        components.run("db-migrate", [program, "db", "migrate"], environment)
        path.write_text(stamp)

    def _start_components(self, components: Components, program: str, environment: dict[str, str], say: Say) -> None:
        say(f"starting {', '.join(_COMPONENTS)}")
        self.started_at = datetime.now(UTC)
        for name, arguments in _COMPONENTS.items():
            components.start(name, [program, *arguments], environment)
        wait_until_healthy(self.url, since=self.started_at, timeout_seconds=_HEALTHY_SECONDS, check=components.check)
