"""The values that the REST client hands out, read from the API's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

FINISHED_STATES = frozenset({"success", "failed"})


@dataclass(frozen=True)
class Dag:
    dag_id: str
    is_paused: bool
    last_parsed: datetime | None
    has_import_errors: bool

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> Self:
        return cls(item["dag_id"], item["is_paused"], _time(item["last_parsed_time"]), item["has_import_errors"])


@dataclass(frozen=True)
class ImportFailure:
    """A file of the DAG folder that could not be imported."""

    filename: str
    stack_trace: str

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> Self:
        return cls(item["filename"], item["stack_trace"])


@dataclass(frozen=True)
class DagRun:
    """`state` is queued, running, success or failed."""

    dag_id: str
    run_id: str
    state: str
    partition_key: str | None
    started: datetime | None
    ended: datetime | None

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            dag_id=item["dag_id"],
            run_id=item["dag_run_id"],
            state=item["state"],
            partition_key=item["partition_key"],
            started=_time(item["start_date"]),
            ended=_time(item["end_date"]),
        )


@dataclass(frozen=True)
class TaskInstance:
    """`map_index` is -1 for a task that is not mapped; `state` None when it is not scheduled yet."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    rendered_map_index: str | None
    state: str | None
    try_number: int
    pid: int | None
    started: datetime | None
    ended: datetime | None

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            dag_id=item["dag_id"],
            run_id=item["dag_run_id"],
            task_id=item["task_id"],
            map_index=item["map_index"],
            rendered_map_index=item["rendered_map_index"],
            state=item["state"],
            try_number=item["try_number"],
            pid=item["pid"],
            started=_time(item["start_date"]),
            ended=_time(item["end_date"]),
        )


def read_log_text(answer: Mapping[str, Any]) -> str:
    """An event is an object with more fields than its text, or a bare line where Airflow could not read it."""
    return "\n".join(_event_text(event) for event in answer["content"])


def _event_text(event: str | Mapping[str, Any]) -> str:
    if isinstance(event, str):
        return event
    text = str(event["event"])
    if details := event.get("error_detail"):
        # The traceback of a failed task is beside the event's text, not in it.
        text += "".join(f"\n{detail.get('exc_type')}: {detail.get('exc_value')}" for detail in details)
    return text


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
