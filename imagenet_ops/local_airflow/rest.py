"""A small client of Airflow's REST API: what the demo and the tests need, as typed values.

Run ids and task ids go into paths quoted. Connection errors are tried again, an answer never is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from imagenet_ops.local_airflow.errors import DagImportFailed, LocalAirflowError, RestError
from imagenet_ops.local_airflow.rest_connection import RestConnection
from imagenet_ops.local_airflow.rest_values import (
    FINISHED_STATES,
    Dag,
    DagRun,
    ImportFailure,
    TaskInstance,
    read_log_text,
)

# After the first import error: another file, which holds the DAG that is waited for, may still be in the queue.
_IMPORT_ERROR_GRACE_SECONDS = 15.0


class AirflowRest:
    """Logs in at the first request, and again when its token has run out. Raises RestError for any refusal."""

    def __init__(self, url: str, username: str, password: str) -> None:
        self._connection = RestConnection(url, username, password)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def call(self, method: str, path: str, *, body: object = None) -> Any:
        """The decoded JSON, None for an empty answer; for what has no method here. `path` begins with a slash."""
        return self._connection.call(method, path, body=body)

    def list_dags(self) -> list[Dag]:
        return [Dag.read(item) for item in self._connection.pages("/api/v2/dags", "dags")]

    def list_import_failures(self) -> list[ImportFailure]:
        return [ImportFailure.read(item) for item in self._connection.pages("/api/v2/importErrors", "import_errors")]

    def find_dag(self, dag_id: str) -> Dag | None:
        try:
            return Dag.read(self._connection.call("GET", f"/api/v2/dags/{_quote(dag_id)}"))
        except RestError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def wait_for_dag(self, dag_id: str, *, timeout_seconds: float = 120.0, parsed_after: datetime | None = None) -> Dag:
        """`parsed_after` asks for a parse by this start, not one that an earlier start left in the database.

        Raises DagImportFailed with the tracebacks soon after a file in the folder has failed, else
        LocalAirflowError when the time is over.
        """
        deadline = time.monotonic() + timeout_seconds
        while not (dag := self._find_parsed_dag(dag_id, parsed_after)):
            if failures := self.list_import_failures():
                deadline = min(deadline, time.monotonic() + _IMPORT_ERROR_GRACE_SECONDS)
            if time.monotonic() > deadline:
                if failures:
                    texts = [f"{failure.filename}:\n{failure.stack_trace}" for failure in failures]
                    raise DagImportFailed("\n".join([f"DAG {dag_id} is missing, and these files failed:", *texts]))
                raise LocalAirflowError(f"DAG {dag_id} is not there after {timeout_seconds:.0f} s")
            time.sleep(0.5)
        return dag

    def trigger(
        self,
        dag_id: str,
        conf: Mapping[str, object] | None = None,
        run_id: str | None = None,
        *,
        partition_key: str | None = None,
    ) -> DagRun:
        """Without a logical date. RestError 400 holds what is wrong with `conf`, 409 means that the run id is taken."""
        body = {"logical_date": None, "conf": dict(conf or {}), "dag_run_id": run_id, "partition_key": partition_key}
        return DagRun.read(self._connection.call("POST", f"/api/v2/dags/{_quote(dag_id)}/dagRuns", body=body))

    def get_run(self, dag_id: str, run_id: str) -> DagRun:
        return DagRun.read(self._connection.call("GET", _run_path(dag_id, run_id)))

    def list_runs(self, dag_id: str) -> list[DagRun]:
        items = self._connection.pages(f"/api/v2/dags/{_quote(dag_id)}/dagRuns", "dag_runs")
        return [DagRun.read(item) for item in items]

    def wait_for_run(self, dag_id: str, run_id: str, *, timeout_seconds: float, poll_seconds: float = 1.0) -> DagRun:
        """The run once it has succeeded or failed; raises LocalAirflowError when the time is over."""
        deadline = time.monotonic() + timeout_seconds
        while (run := self.get_run(dag_id, run_id)).state not in FINISHED_STATES:
            if time.monotonic() > deadline:
                raise LocalAirflowError(f"run {run_id} is still {run.state} after {timeout_seconds:.0f} s")
            time.sleep(poll_seconds)
        return run

    def set_run_state(self, dag_id: str, run_id: str, state: str) -> DagRun:
        """`success`, `failed` or `queued`."""
        return DagRun.read(self._connection.call("PATCH", _run_path(dag_id, run_id), body={"state": state}))

    def list_tasks(self, dag_id: str, run_id: str) -> list[TaskInstance]:
        """All task instances of the run, mapped ones each, by task id and map index."""
        items = self._connection.pages(f"{_run_path(dag_id, run_id)}/taskInstances", "task_instances")
        return sorted((TaskInstance.read(item) for item in items), key=lambda task: (task.task_id, task.map_index))

    def read_log(self, task: TaskInstance, *, try_number: int | None = None) -> str:
        """One line an event, in order; the current try unless told otherwise."""
        path = f"{_run_path(task.dag_id, task.run_id)}/taskInstances/{_quote(task.task_id)}/logs"
        params: dict[str, str | int] = {"map_index": task.map_index, "full_content": "true"}
        return read_log_text(self._connection.call("GET", f"{path}/{try_number or task.try_number}", params=params))

    def set_task_state(self, task: TaskInstance, state: str) -> None:
        """`success`, `failed` or `skipped`; what runs is ended."""
        path = f"{_run_path(task.dag_id, task.run_id)}/taskInstances/{_quote(task.task_id)}"
        path = path if task.map_index < 0 else f"{path}/{task.map_index}"
        self._connection.call("PATCH", path, body={"new_state": state})

    def clear_tasks(
        self,
        dag_id: str,
        run_id: str,
        task_ids: Sequence[str | tuple[str, int]] | None = None,
        *,
        only_failed: bool = False,
        include_downstream: bool = False,
    ) -> int:
        """Lets them run again, and the run with them; returns how many. (id, map index) means one, no ids all."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": list(task_ids) if task_ids is not None else None,
            "only_failed": only_failed,
            "include_downstream": include_downstream,
            "reset_dag_runs": True,
        }
        answer = self._connection.call("POST", f"/api/v2/dags/{_quote(dag_id)}/clearTaskInstances", body=body)
        return int(answer["total_entries"])

    def _find_parsed_dag(self, dag_id: str, parsed_after: datetime | None) -> Dag | None:
        dag = self.find_dag(dag_id)
        if dag and parsed_after and not (dag.last_parsed and dag.last_parsed >= parsed_after):
            return None
        return dag


def _quote(part: str) -> str:
    return quote(part, safe="")


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{_quote(dag_id)}/dagRuns/{_quote(run_id)}"
