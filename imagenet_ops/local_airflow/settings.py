"""What the local Airflow is told, and where it keeps its files.

{home}/
    secrets.json          keys and the password of the admin, mode 0600, made once
    passwords.json        the password as Airflow's simple auth manager reads it, mode 0600
    running.lock          locked by the process that serves this home
    processes.json        what runs, for whoever must stop it
    database/             PostgreSQL's data and, where the path is short enough, its socket
    database_migrated     the Airflow version and the database that its schema was made for
    airflow.cfg           written by Airflow; the environment overrules it
    logs/components/      one log a component, of this start only
    logs/dag_id=…/        the task logs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class LocalAirflowSettings:
    """All paths absolute. Port 0 means any free one; `plugins_folder` None means none.

    `parallelism` tasks run at once, each in a process of about 150 MB. `extra_environment` reaches every component
    and task and comes last: connections (`AIRFLOW_CONN_…`), or another value for a variable that is set here.
    """

    home: Path
    dags_folder: Path
    plugins_folder: Path | None
    store_url: str
    trainer_python: Path
    port: int
    parallelism: int = 2
    extra_environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HomeLayout:
    """The names of all files below a home that this package writes or reads."""

    home: Path

    @property
    def secrets(self) -> Path:
        return self.home / "secrets.json"

    @property
    def passwords(self) -> Path:
        return self.home / "passwords.json"

    @property
    def lock(self) -> Path:
        return self.home / "running.lock"

    @property
    def processes(self) -> Path:
        return self.home / "processes.json"

    @property
    def database(self) -> Path:
        return self.home / "database"

    @property
    def database_migrated(self) -> Path:
        return self.home / "database_migrated"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def component_log(self, name: str) -> Path:
        return self.logs / "components" / f"{name}.log"
