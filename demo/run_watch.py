"""A run of the demo's DAG as it goes: a line whenever a task changes its state, and one an epoch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from imagenet_ops.adapters.object_store import ObjectStore
from imagenet_ops.local_airflow.airflow import LocalAirflow
from imagenet_ops.local_airflow.rest import AirflowRest
from imagenet_ops.local_airflow.rest_values import DagRun, TaskInstance

_SECONDS_BETWEEN_LOOKS = 1.0
_WORTH_A_LINE = {"running", "success", "failed", "up_for_retry", "upstream_failed", "skipped"}


@dataclass
class RunWatch:
    """Prints what is new since the last look."""

    store: ObjectStore
    metrics_key: Callable[[], str | None]
    start: float = field(default_factory=time.monotonic)
    states: dict[tuple[str, int], str | None] = field(default_factory=dict)
    num_epochs: int = 0

    def follow(self, airflow: LocalAirflow, rest: AirflowRest, run: DagRun) -> tuple[DagRun, list[TaskInstance]]:
        """Returns the finished run and its tasks. Raises ComponentDied when Airflow itself has gone."""
        while True:
            airflow.check()
            run = rest.get_run(run.dag_id, run.run_id)
            tasks = rest.list_tasks(run.dag_id, run.run_id)
            for task in sorted(
                tasks, key=lambda task: (task.started is None, task.started and task.started.timestamp())
            ):
                self._show_task(task)
            for line in self._new_epochs():
                self._say(line)
            if run.state in ("success", "failed"):
                return run, tasks
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _show_task(self, task: TaskInstance) -> None:
        key = (task.task_id, task.map_index)
        if self.states.get(key) == task.state:
            return
        self.states[key] = task.state
        if task.state in _WORTH_A_LINE:
            part = f" {task.rendered_map_index or task.map_index}" if task.map_index >= 0 else ""
            seconds = f" {(task.ended - task.started).total_seconds():.1f} s" if task.started and task.ended else ""
            attempt = f" (attempt {task.try_number})" if task.try_number > 1 else ""
            self._say(f"{task.task_id + part:<36} {task.state}{seconds}{attempt}")

    def _new_epochs(self) -> Iterator[str]:
        key = self.metrics_key()
        if key is None or self.states.get(("train", -1)) != "running" or not self.store.head(key):
            return
        lines = self.store.get(key).decode().splitlines()
        for line in lines[self.num_epochs :]:
            epoch = json.loads(line)
            yield (
                f"  epoch {epoch['epoch']:>3}: loss {epoch['train_loss']:.3f}, validation top-1 "
                f"{epoch['validation_top1']:.1%}, {epoch['images_per_second']:.0f} images/s"
            )
        self.num_epochs = len(lines)

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self.start:>6.0f} s  {text}", flush=True)
