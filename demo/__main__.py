"""python -m demo: builds the demo dataset and its classifier through a local Airflow, and shows what came out."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import FrameType

from demo.archive import prepare
from demo.run_watch import RunWatch
from imagenet_ops import commit
from imagenet_ops.adapters.object_store import open_store
from imagenet_ops.catalogue import find_dataset, load_dataset
from imagenet_ops.deployment import Deployment, read_deployment
from imagenet_ops.errors import ImagenetOpsError
from imagenet_ops.keys import StageKeys
from imagenet_ops.local_airflow.airflow import LocalAirflow
from imagenet_ops.local_airflow.rest_values import TaskInstance
from imagenet_ops.local_airflow.settings import LocalAirflowSettings
from imagenet_ops.local_run import look_ahead
from imagenet_ops.manifests import DatasetReport, TrainedModel
from imagenet_ops.progress import LogProgress
from imagenet_ops.stages.pipeline import STAGE_NAMES
from imagenet_ops.stages.stage import StageContext
from imagenet_ops.summary import summarise_dataset, summarise_places, summarise_training

DATASET = "demo"
LOCAL = Path(".local").absolute()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="of the web UI while the run lasts (default: 8080)")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run_demo(options.port)
    except ImagenetOpsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; what is done stays done, `make demo` goes on", file=sys.stderr)
        return 130


def run_demo(port: int) -> int:
    """0 when the run has succeeded, 1 when it has failed; nothing is left running in any case."""
    prepare()
    deployment = read_deployment()
    context = _build_context(deployment)
    airflow = LocalAirflow(_airflow_settings(deployment, port))
    try:
        airflow.start(_say)
        with airflow.rest() as rest:
            rest.wait_for_dag(DATASET, parsed_after=airflow.started_at)
            _say(f"web UI while this runs: {airflow.url}, user {airflow.username}, password {airflow.password}")
            run = rest.trigger(DATASET)
            watch = RunWatch(context.store, lambda: _metrics_key(context))
            run, tasks = watch.follow(airflow, rest, run)
            if run.state != "success":
                _show_failures([(task, rest.read_log(task)) for task in tasks if task.state == "failed"])
                return 1
    finally:
        airflow.stop()
    _show_summary(context, tasks)
    return 0


def _build_context(deployment: Deployment) -> StageContext:
    return StageContext(
        store=open_store(deployment.store_url),
        dataset=load_dataset(find_dataset(deployment.catalogue, DATASET)),
        progress=LogProgress(),
        trainer_python=deployment.trainer_python,
    )


def _airflow_settings(deployment: Deployment, port: int) -> LocalAirflowSettings:
    plugins = Path("plugins").absolute()
    return LocalAirflowSettings(
        home=LOCAL / "airflow",
        dags_folder=Path("dags").absolute(),
        plugins_folder=plugins if plugins.exists() else None,
        store_url=deployment.store_url,
        trainer_python=deployment.trainer_python,
        port=port,
    )


def _metrics_key(context: StageContext) -> str | None:
    keys = {outcome.stage: outcome.manifest_key for outcome in look_ahead(context)}
    return StageKeys.containing(keys["train"]).data("metrics.jsonl") if keys["train"] else None


def _show_failures(failures: Sequence[tuple[TaskInstance, str]]) -> None:
    for task, log in failures:
        print(f"\n{task.task_id} failed; the end of its log:\n" + "\n".join(log.splitlines()[-30:]), file=sys.stderr)


def _show_summary(context: StageContext, tasks: Sequence[TaskInstance]) -> None:
    keys = {outcome.stage: outcome.manifest_key for outcome in look_ahead(context)}
    print("\nstage                   seconds")
    for stage in STAGE_NAMES:
        print(_stage_line(context, stage, keys[stage], tasks))
    report_key, model_key = keys["verify"], keys["train"]
    assert report_key is not None  # the run has succeeded
    assert model_key is not None
    report = commit.read(context.store, report_key, DatasetReport)
    lines = summarise_dataset(report)
    lines += summarise_training(report, commit.read(context.store, model_key, TrainedModel))
    lines += summarise_places(context.store, report_key, report, model_key)
    lines += ["web UI     make up, then open the address it prints"]
    print("\n".join(["", *lines]))


def _stage_line(context: StageContext, stage: str, manifest_key: str | None, tasks: Sequence[TaskInstance]) -> str:
    """Seconds from its first task's start to its last one's end; reused where the manifest is older than the run."""
    mine = [task for task in tasks if task.task_id.partition(".")[0] == stage and task.started and task.ended]
    started: datetime | None = min((task.started for task in mine if task.started), default=None)
    ended = max((task.ended for task in mine if task.ended), default=None)
    seconds = (ended - started).total_seconds() if started and ended else 0.0
    manifest = context.store.head(manifest_key) if manifest_key else None
    reused = manifest is not None and started is not None and manifest.modified_seconds < started.timestamp()
    return f"{stage:<22} {seconds:>8.1f}  {'reused' if reused else 'built'}"


def _say(text: str) -> None:
    print(text, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
