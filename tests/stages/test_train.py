"""train: what the gang is told, and what becomes of what it leaves; a few lines of Python stand in for the trainer."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.errors import ConfigError, DataError, ProcessFailed
from imagenet_ops.manifests import (
    DatasetManifest,
    DatasetReport,
    EpochMetrics,
    StoredObject,
    TrainedModel,
    TrainerChunk,
    TrainerJob,
    TrainerResult,
)
from imagenet_ops.settings import TrainingSettings
from imagenet_ops.stages import gang, train
from imagenet_ops.stages.stage import StageContext, locate, run_stage
from tests.builders import class_tars
from tests.tiny_dataset import Pipeline, settings, tiny_classes, write_archives

TRAINING = TrainingSettings(num_layers=18, num_epochs=2, num_workers=2, num_servers=3, image_pixels=28)
EPOCH = EpochMetrics(
    epoch=0,
    learning_rate=0.1,
    train_loss=1.5,
    train_top1=0.5,
    validation_loss=1.25,
    validation_top1=0.75,
    validation_top5=1.0,
    num_validation=4,
)
STORED = StoredObject(key="data/model-symbol.json", num_bytes=1, sha256="0" * 64)
RESULT = TrainerResult(symbol=STORED, parameters=STORED, epochs=[EPOCH])

# What the package sees of a trainer: each process prints what it was given, and the first worker leaves the result.
STAND_IN = """
import json, os, sys, time
variables = {name: value for name, value in os.environ.items() if name.startswith(("DMLC_", "OMP_"))}
print(json.dumps([sys.argv[1:], variables]), flush=True)
if os.environ["DMLC_ROLE"] != "worker":
    time.sleep(60)
folder = os.path.dirname(os.path.join(sys.argv[3].removeprefix("file://"), sys.argv[4]))
"""


@pytest.fixture
def verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr(gang, "_SECONDS_BETWEEN_POLLS", 0.05)
    paths = write_archives(tmp_path / "source", class_tars(tiny_classes()))
    return Pipeline(FileStore(tmp_path / "store"), settings(paths, training=TRAINING)).run("verify")


def trainer(folder: Path, last_lines: str) -> Path:
    """A Python whose `-m imagenet_ops.trainer` is the stand-in; the result to leave lies beside it."""
    (folder / "result.json").write_bytes(RESULT.to_json())
    (folder / "stand_in.py").write_text(STAND_IN + last_lines)
    program = folder / "python with a space"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -m ] && exec {sys.executable} {folder}/stand_in.py "$@"\nexec {sys.executable} "$@"\n'
    )
    program.chmod(0o755)
    return program


def with_trainer(pipeline: Pipeline, program: Path) -> StageContext:
    return StageContext(pipeline.store, pipeline.context.dataset, pipeline.context.progress, program)


def leave_result(folder: Path) -> str:
    return f"import shutil; shutil.copy({str(folder / 'result.json')!r}, folder)\n"


def logs_of(pipeline: Pipeline) -> dict[str, str]:
    keys = locate(pipeline.context, train.STAGE, pipeline.keys["verify"]).keys
    prefix = keys.data("logs")
    return {
        info.key.removeprefix(f"{prefix}/"): pipeline.store.get(info.key).decode()
        for info in pipeline.store.list(prefix)
    }


def test_a_host_other_than_this_one_is_refused_before_anything_is_written(verified: Pipeline) -> None:
    dataset = verified.context.dataset
    training = TRAINING.model_copy(update={"hosts": ["localhost", "gpu-2", "gpu-1"]})
    verified.context = StageContext(
        verified.store, dataset.model_copy(update={"training": training}), verified.context.progress, Path("unused")
    )
    with pytest.raises(ConfigError, match=r"training\.hosts: only localhost can train so far, given gpu-1, gpu-2"):
        run_stage(verified.context, train.STAGE, verified.keys["verify"])
    assert list(verified.store.list("tiny/train")) == []


def test_the_job_is_the_training_section_and_the_chunks_of_each_split_by_full_keys(verified: Pipeline) -> None:
    with pytest.raises(ProcessFailed, match=r"scheduler_0 can't be started: .*no trainer"):
        run_stage(verified.context, train.STAGE, verified.keys["verify"])
    keys = locate(verified.context, train.STAGE, verified.keys["verify"]).keys
    job = TrainerJob.from_json("job", verified.store.get(keys.data("job.json")))
    report: DatasetReport = verified.manifest("verify", DatasetReport)
    chunks = {chunk.name: chunk for chunk in verified.manifest("pack_recordio", DatasetManifest).chunks}

    def described(name: str) -> TrainerChunk:
        rec_key, idx_key = (verified.data_key("pack_recordio", f"{name}.{end}") for end in ("rec", "idx"))
        return TrainerChunk(rec_key=rec_key, idx_key=idx_key, num_records=chunks[name].num_records)

    assert job == TrainerJob(
        data_prefix=f"{keys.folder}/data/",
        seed=7,
        training=TRAINING,
        num_classes=2,
        channel_mean=report.channel_mean,
        channel_std=report.channel_std,
        train_chunks=[described("train_00000"), described("train_00001")],
        validation_chunks=[described("validation_00000")],
    )
    assert all(verified.store.head(chunk.rec_key) for chunk in job.train_chunks + job.validation_chunks)


def test_the_gang_is_a_scheduler_servers_and_workers_that_all_know_the_job(verified: Pipeline, tmp_path: Path) -> None:
    context = with_trainer(verified, trainer(tmp_path, "time.sleep(0.3)\n" + leave_result(tmp_path)))
    run_stage(context, train.STAGE, verified.keys["verify"])
    keys = locate(verified.context, train.STAGE, verified.keys["verify"]).keys
    logs = logs_of(verified)
    names = ["scheduler_0", "server_0", "server_1", "server_2", "worker_0", "worker_1"]
    assert sorted(logs) == [f"{name}.log" for name in names]
    ports = set()
    for name in names:
        if not (log := logs[f"{name}.log"]):
            assert not name.startswith("worker")  # stopped before it could print
            continue
        arguments, variables = json.loads(log)
        assert arguments == ["-m", "imagenet_ops.trainer", verified.store.url, keys.data("job.json")]
        ports.add(variables.pop("DMLC_PS_ROOT_PORT"))
        assert variables == {
            "DMLC_ROLE": name.partition("_")[0],
            "DMLC_PS_ROOT_URI": "127.0.0.1",
            "DMLC_NODE_HOST": "127.0.0.1",
            "DMLC_NUM_WORKER": "2",
            "DMLC_NUM_SERVER": "3",
            "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // 2)),
        }
    assert len(ports) == 1 and 1024 < int(ports.pop()) < 65536


def test_the_model_is_what_the_trainer_left(verified: Pipeline, tmp_path: Path) -> None:
    context = with_trainer(verified, trainer(tmp_path, leave_result(tmp_path)))
    key = run_stage(context, train.STAGE, verified.keys["verify"])
    model = TrainedModel.from_json(key, verified.store.get(key))
    assert (model.symbol, model.parameters, model.epochs) == (RESULT.symbol, RESULT.parameters, RESULT.epochs)
    assert set(model.inputs) == set(verified.keys)
    assert run_stage(verified.context, train.STAGE, verified.keys["verify"]) == key  # without a trainer: reused


def test_a_trainer_that_fails_leaves_its_logs_and_no_manifest_and_the_next_attempt_succeeds(
    verified: Pipeline, tmp_path: Path
) -> None:
    broken = with_trainer(verified, trainer(tmp_path, "time.sleep(0.1); sys.exit('no such GPU')\n"))
    with pytest.raises(ProcessFailed, match=r"(?s)worker_\d on localhost ended with exit code 1; .*no such GPU"):
        run_stage(broken, train.STAGE, verified.keys["verify"])
    assert any("no such GPU" in log for name, log in logs_of(verified).items() if name.startswith("worker"))
    keys = locate(verified.context, train.STAGE, verified.keys["verify"]).keys
    assert verified.store.head(keys.manifest) is None
    mended = with_trainer(verified, trainer(tmp_path, leave_result(tmp_path)))
    assert run_stage(mended, train.STAGE, verified.keys["verify"]) == keys.manifest
    assert not any("no such GPU" in log for log in logs_of(verified).values())


def test_a_result_that_is_damaged_is_told_by_its_key(verified: Pipeline, tmp_path: Path) -> None:
    program = trainer(tmp_path, leave_result(tmp_path))
    (tmp_path / "result.json").write_text('{"epochs": []}')
    key = locate(verified.context, train.STAGE, verified.keys["verify"]).keys.data("result.json")
    with pytest.raises(DataError, match=f"{re.escape(key)}: not a TrainerResult"):
        run_stage(with_trainer(verified, program), train.STAGE, verified.keys["verify"])
