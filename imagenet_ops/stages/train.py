"""train: a gang of one scheduler, servers and workers fits the classifier; a retry goes on from the last checkpoint.

data/job.json            what the trainer is told
data/metrics.jsonl       a line an epoch, with its speed
data/checkpoint/         the last whole epoch: weights, optimizer state, metrics
data/result.json         written by the trainer when all epochs are done
data/model-symbol.json   the classifier
data/model-0000.params
data/logs/{process}.log  what each process printed, of the last attempt
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from imagenet_ops import commit
from imagenet_ops.adapters.hosts.local import ADDRESS, LocalHost
from imagenet_ops.adapters.machine_lock import machine_lock
from imagenet_ops.domain.cluster import GangPlan, plan_gang
from imagenet_ops.errors import ConfigError
from imagenet_ops.manifests import (
    Chunk,
    DatasetManifest,
    DatasetReport,
    Split,
    TrainedModel,
    TrainerChunk,
    TrainerJob,
    TrainerResult,
)
from imagenet_ops.progress import Task
from imagenet_ops.settings import Settings, TrainingSettings
from imagenet_ops.stages.gang import run_gang
from imagenet_ops.stages.stage import Stage, StageContext, StageRun

log = logging.getLogger(__name__)


class TrainSettings(Settings):
    """The seed and the training section of the dataset's settings."""

    seed: int
    training: TrainingSettings


def _read_settings(context: StageContext) -> TrainSettings:
    return TrainSettings(seed=context.dataset.seed, training=context.dataset.training)


def _build(run: StageRun[TrainSettings]) -> TrainedModel:
    _check_hosts(run.settings.training)
    result_key = run.keys.data("result.json")
    # Two gangs would write over each other's checkpoints. The second waits, and finds the first one's result.
    with machine_lock(f"{run.store.url}/{run.keys.folder}"):
        if not run.store.head(result_key):
            _train(run)
    result = commit.read(run.store, result_key, TrainerResult)
    return TrainedModel(inputs=run.inputs, symbol=result.symbol, parameters=result.parameters, epochs=result.epochs)


def _train(run: StageRun[TrainSettings]) -> None:
    training = run.settings.training
    job_key = run.keys.data("job.json")
    run.store.put(job_key, _describe_job(run).to_json())
    with (
        tempfile.TemporaryDirectory(prefix="imagenet_ops_train_") as log_folder,
        run.context.progress.task("train", training.num_epochs, "epochs") as progress,
    ):
        host = LocalHost(Path(log_folder))
        plan = _plan(run, job_key, host.choose_free_port())
        log.info("global batch %d: %d a device", training.global_batch_size, training.batch_size_per_device)
        try:
            run_gang(plan, {"localhost": host}, _epoch_reporter(run, progress))
        finally:
            _keep_logs(run, Path(log_folder))


def _check_hosts(training: TrainingSettings) -> None:
    if others := sorted(set(training.hosts) - {"localhost"}):
        raise ConfigError(f"training.hosts: only localhost can train so far, given {', '.join(others)}")


def _describe_job(run: StageRun[TrainSettings]) -> TrainerJob:
    dataset = run.read_input("pack_recordio", DatasetManifest)
    report = run.read_input("verify", DatasetReport)
    return TrainerJob(
        data_prefix=run.keys.data(""),
        seed=run.settings.seed,
        training=run.settings.training,
        num_classes=dataset.num_classes,
        channel_mean=report.channel_mean,
        channel_std=report.channel_std,
        train_chunks=_trainer_chunks(run, dataset.chunks, "train"),
        validation_chunks=_trainer_chunks(run, dataset.chunks, "validation"),
    )


def _trainer_chunks(run: StageRun[TrainSettings], chunks: list[Chunk], split: Split) -> list[TrainerChunk]:
    return [
        TrainerChunk(
            rec_key=run.key_of("pack_recordio", chunk.rec.key),
            idx_key=run.key_of("pack_recordio", chunk.idx.key),
            num_records=chunk.num_records,
        )
        for chunk in chunks
        if chunk.split == split
    ]


def _plan(run: StageRun[TrainSettings], job_key: str, port: int) -> GangPlan:
    training = run.settings.training
    threads = max(1, (os.cpu_count() or 1) // training.num_workers)
    return plan_gang(
        argv=(str(run.context.trainer_python), "-m", "imagenet_ops.trainer", run.store.url, job_key),
        hosts=training.hosts,
        num_workers=training.num_workers,
        num_servers=training.num_servers,
        scheduler_address=(ADDRESS, port),
        environment={"DMLC_NODE_HOST": ADDRESS, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"},
    )


def _epoch_reporter(run: StageRun[TrainSettings], progress: Task) -> Callable[[], None]:
    """Logs each line that the trainer adds to its metrics, and moves the progress on."""
    num_seen = 0

    def report() -> None:
        nonlocal num_seen
        key = run.keys.data("metrics.jsonl")
        lines = run.store.get(key).decode().splitlines() if run.store.head(key) else []
        for line in lines[num_seen:]:
            log.info("epoch done: %s", line)
            progress.advance(1)
        num_seen = len(lines)

    return report


def _keep_logs(run: StageRun[TrainSettings], folder: Path) -> None:
    for path in sorted(folder.glob("*.log")):
        run.store.put(run.keys.data(f"logs/{path.name}"), path.read_bytes())


STAGE = Stage(
    name="train",
    version=1,
    title="Train the classifier on a gang of processes",
    manifest=TrainedModel,
    read_settings=_read_settings,
    build=_build,
)
