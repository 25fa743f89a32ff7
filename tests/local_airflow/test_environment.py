from __future__ import annotations

from pathlib import Path

import imagenet_ops
from imagenet_ops.local_airflow.credentials import Credentials
from imagenet_ops.local_airflow.environment import build_environment, build_passwords
from imagenet_ops.local_airflow.settings import LocalAirflowSettings

PACKAGE_ROOT = str(Path(imagenet_ops.__file__).parent.parent)
CREDENTIALS = Credentials(jwt_secret="jwt", api_secret_key="api", fernet_key="fernet", password="word")


def build(base: dict[str, str], extra: dict[str, str] | None = None) -> dict[str, str]:
    settings = LocalAirflowSettings(
        home=Path("/p/.local/airflow"),
        dags_folder=Path("/p/dags"),
        plugins_folder=Path("/p/plugins"),
        store_url="file:///p/.local/store",
        trainer_python=Path("/p/.venv-trainer/bin/python"),
        port=8081,
        parallelism=3,
        extra_environment=extra or {},
    )
    return build_environment(
        settings,
        CREDENTIALS,
        database_url="postgresql+psycopg2://airflow@/postgres?host=/p/.local/airflow/database",
        scripts_folder=Path("/p/.venv/bin"),
        marker="0a1b",
        base=base,
    )


def test_the_whole_environment_is_as_written_here() -> None:
    assert build({"HOME": "/home/me", "PATH": "/usr/bin:/bin"}) == {
        "HOME": "/home/me",
        "PATH": "/p/.venv/bin:/usr/bin:/bin",
        "PYTHONPATH": PACKAGE_ROOT,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
        "SPT_NOENV": "1",
        "IMAGENET_OPS_LOCAL_AIRFLOW": "0a1b",
        "IMAGENET_OPS_STORE_URL": "file:///p/.local/store",
        "IMAGENET_OPS_TRAINER_PYTHON": "/p/.venv-trainer/bin/python",
        "AIRFLOW_HOME": "/p/.local/airflow",
        "AIRFLOW__API_AUTH__JWT_SECRET": "jwt",
        "AIRFLOW__API__BASE_URL": "http://127.0.0.1:8081",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": "8081",
        "AIRFLOW__API__SECRET_KEY": "api",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": "/p/dags",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": "http://127.0.0.1:8081/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__FERNET_KEY": "fernet",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "3",
        "AIRFLOW__CORE__PLUGINS_FOLDER": "/p/plugins",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": "/p/.local/airflow/passwords.json",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql+psycopg2://airflow@/postgres?host=/p/.local/airflow/database",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": "/p/.local/airflow/logs",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "30",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",
        "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "100",
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "AIRFLOW__WORKERS__SOCKET_CLEANUP_TIMEOUT": "5",
    }


def test_settings_of_another_airflow_in_the_shell_are_left_out_but_connections_are_kept() -> None:
    environment = build(
        {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
            "AIRFLOW_CONFIG": "/other/airflow.cfg",
            "AIRFLOW_HOME": "/other",
            "AIRFLOW_CONN_GPU_HOSTS": "{}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
    )

    assert environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert environment["AIRFLOW_HOME"] == "/p/.local/airflow"
    assert environment["AIRFLOW_CONN_GPU_HOSTS"] == "{}"
    assert not environment.keys() & {"AIRFLOW__CORE__UNIT_TEST_MODE", "AIRFLOW_CONFIG", "PYTHONDONTWRITEBYTECODE"}


def test_a_proxy_of_the_shell_is_kept_for_others_than_this_machine() -> None:
    environment = build({"HTTPS_PROXY": "http://proxy:3128", "no_proxy": "intern"})

    assert environment["HTTPS_PROXY"] == "http://proxy:3128"
    assert environment["NO_PROXY"] == environment["no_proxy"] == "127.0.0.1,localhost,intern"


def test_the_callers_own_variables_come_last() -> None:
    environment = build({}, {"AIRFLOW__API__WORKERS": "2", "AIRFLOW_CONN_GPU_HOSTS": "{}"})

    assert environment["AIRFLOW__API__WORKERS"] == "2"
    assert environment["AIRFLOW_CONN_GPU_HOSTS"] == "{}"


def test_the_password_file_is_what_the_simple_auth_manager_reads() -> None:
    assert build_passwords(CREDENTIALS) == '{"admin": "word"}\n'
