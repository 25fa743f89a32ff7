"""The environment of Airflow's components as a value: computed, compared in a test, then used.

Only variables configure the local Airflow: no file is edited, and what `airflow.cfg` says does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import imagenet_ops
from imagenet_ops.local_airflow.credentials import USERNAME, Credentials
from imagenet_ops.local_airflow.settings import HomeLayout, LocalAirflowSettings

HOST = "127.0.0.1"

# Every process of one start carries its marker here, so that one that has left its parent, its group and its
# session is still known as ours.
MARKER_VARIABLE = "IMAGENET_OPS_LOCAL_AIRFLOW"


def build_environment(
    settings: LocalAirflowSettings,
    credentials: Credentials,
    *,
    database_url: str,
    scripts_folder: Path,
    marker: str,
    base: Mapping[str, str],
) -> dict[str, str]:
    """Everything that a component gets; `settings.port` is the port that is truly free.

    From `base` comes what is not about Airflow, and its connections and variables. Its `AIRFLOW__…` settings are left
    out: one that a shell exports for another Airflow would break this one.
    """
    return {
        **_inherited(base),
        **_process_variables(base, scripts_folder, marker),
        **_core_variables(settings),
        **_api_variables(settings, credentials),
        **_pace_variables(),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database_url,
        "IMAGENET_OPS_STORE_URL": settings.store_url,
        "IMAGENET_OPS_TRAINER_PYTHON": str(settings.trainer_python),
        **settings.extra_environment,
    }


def build_passwords(credentials: Credentials) -> str:
    """The text of the file that the simple auth manager reads."""
    return json.dumps({USERNAME: credentials.password}) + "\n"


def _inherited(base: Mapping[str, str]) -> dict[str, str]:
    # Without byte code every component and every task compiles all of Airflow again, which doubles its start.
    dropped = {"PYTHONDONTWRITEBYTECODE", "AIRFLOW_CONFIG"}
    return {name: value for name, value in base.items() if name not in dropped and not name.startswith("AIRFLOW__")}


def _process_variables(base: Mapping[str, str], scripts_folder: Path, marker: str) -> dict[str, str]:
    package_root = str(Path(imagenet_ops.__file__).parent.parent)
    no_proxy = _join(",", HOST, "localhost", base.get("NO_PROXY", base.get("no_proxy", "")))
    return {
        "PATH": _join(":", str(scripts_folder), base.get("PATH", "")),
        "PYTHONPATH": _join(":", package_root, base.get("PYTHONPATH", "")),
        "NO_PROXY": no_proxy,  # tasks report to the API on this machine, never through a proxy
        "no_proxy": no_proxy,
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
        MARKER_VARIABLE: marker,
        "SPT_NOENV": "1",  # keeps setproctitle from overwriting the variables, the marker among them
    }


def _core_variables(settings: LocalAirflowSettings) -> dict[str, str]:
    layout = HomeLayout(settings.home)
    return {
        "AIRFLOW_HOME": str(settings.home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(settings.dags_folder),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(settings.plugins_folder or settings.home / "no_plugins"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(settings.parallelism),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USERNAME}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(layout.passwords),
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(layout.logs),
    }


def _api_variables(settings: LocalAirflowSettings, credentials: Credentials) -> dict[str, str]:
    url = f"http://{HOST}:{settings.port}"
    return {
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": str(settings.port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": credentials.api_secret_key,
        "AIRFLOW__API_AUTH__JWT_SECRET": credentials.jwt_secret,
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": credentials.fernet_key,
    }


def _pace_variables() -> dict[str, str]:
    """Seconds, but for the counts. Small where a person waits, large where a busy machine must be forgiven."""
    return {
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",  # a new DAG file is seen
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",  # a changed one is parsed
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        # A task whose supervisor was killed is known lost after timeout + detection. Not less, since a
        # false alarm on a busy machine would run the task twice.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
        # Tasks of a scheduler that was killed start again: its heartbeat must be old, and someone must look.
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "30",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
        # A supervisor often notices the end of its task only when it wakes for a heartbeat, and holds the slot as
        # long: with Airflow's 5 s a task of no work takes 5 s.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        # A task outlives an API server that is slow for a while; with Airflow's 3 it would be ended after 3 s.
        "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "100",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",
        # How long the children of a killed task, which hold its output open, delay the retry.
        "AIRFLOW__WORKERS__SOCKET_CLEANUP_TIMEOUT": "5",
    }


def _join(separator: str, *parts: str) -> str:
    return separator.join(part for part in parts if part)
