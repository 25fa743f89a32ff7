"""Stages as Airflow tasks: the task's id is the stage's name, XCom carries keys only.

A stage of one task is one task. A mapped stage is a group of three: `plan` gives the keys of the parts still to be
built, `part` is mapped over them, `finish` adds up; nothing to map over means that all is there already.
Heavy imports are inside the tasks: a DAG file is parsed again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow.exceptions import AirflowFailException
from airflow.sdk import TriggerRule, get_current_context, task, task_group

from imagenet_ops.errors import ConfigError, DataError


def stage_task(catalogue_file: Path, stage: str) -> Callable[..., Any]:
    """A task of a stage that is one task; call it with the key that the stage before returned."""

    @task(task_id=stage)
    def run(input_key: str | None = None) -> str:
        from imagenet_ops.stages.stage import run_stage

        with _stage_run(catalogue_file, stage) as (context, definition):
            return run_stage(context, definition, input_key)

    return run


def mapped_stage(catalogue_file: Path, stage: str) -> Callable[..., Any]:
    """A group of tasks of a mapped stage; call it with the key that the stage before returned."""

    @task
    def plan(input_key: str) -> list[str]:
        from imagenet_ops.stages.stage import plan_parts

        with _stage_run(catalogue_file, stage) as (context, definition):
            return plan_parts(context, definition, input_key)

    @task(map_index_template="{{ part_name }}")
    def part(part_key: str) -> str:
        from imagenet_ops.keys import part_name
        from imagenet_ops.stages.stage import build_part

        get_current_context()["part_name"] = part_name(part_key)  # type: ignore[typeddict-unknown-key]
        with _stage_run(catalogue_file, stage) as (context, definition):
            return build_part(context, definition, part_key)

    @task(trigger_rule=TriggerRule.NONE_FAILED)
    def finish(input_key: str) -> str:
        from imagenet_ops.stages.stage import finish as finish_stage

        with _stage_run(catalogue_file, stage) as (context, definition):
            return finish_stage(context, definition, input_key)

    @task_group(group_id=stage)
    def group(input_key: str) -> Any:
        parts = part.expand(part_key=plan(input_key))
        finished = finish(input_key)
        parts >> finished
        return finished

    return group


@contextmanager
def _stage_run(catalogue_file: Path, stage: str) -> Iterator[tuple[Any, Any]]:
    """The stage and what it needs; our errors become Airflow's fail-now, or stay and are retried."""
    from imagenet_ops.orchestration.context import build_context
    from imagenet_ops.stages.pipeline import find_stage

    params: Mapping[str, Any] = get_current_context()["params"]
    try:
        yield build_context(catalogue_file, params), find_stage(stage)
    except (ConfigError, DataError) as error:
        raise AirflowFailException(str(error)) from None
