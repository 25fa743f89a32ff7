"""The gang trains for real, in the trainer's environment: it learns, and survives what kills it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import simplejpeg

from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.deployment import read_deployment
from imagenet_ops.errors import ProcessFailed
from imagenet_ops.manifests import DatasetManifest, TrainedModel
from imagenet_ops.settings import TrainingSettings
from imagenet_ops.stages import gang, train
from imagenet_ops.stages.stage import StageContext, locate, run_stage
from tests.builders import class_tars
from tests.process_life import is_alive, wait_until
from tests.tiny_dataset import Pipeline, settings, write_archives

pytestmark = pytest.mark.trainer
REPOSITORY = Path(__file__).parents[2]
NUM_IMAGES, NUM_VALIDATION = 40, 7  # a class; 21 validation images are not a whole number of batches, nor of halves
COLOURS = {"n01": (200, 80, 80), "n02": (80, 200, 80), "n03": (80, 80, 200)}
TRAINING = TrainingSettings(
    num_layers=10,
    width=0.25,
    image_pixels=32,
    random_crop_min_area=0.5,
    num_epochs=4,
    batch_size_per_device=8,
    learning_rate=0.05,
    num_workers=2,
    num_servers=1,
)


def coloured_noise(synset: str, seed: int) -> bytes:
    """32 × 32 pixels; the colour of the class shows through."""
    noise = np.random.default_rng([int(synset[1:]), seed]).integers(-60, 60, (8, 8, 3))
    pixels = np.clip(noise + COLOURS[synset], 0, 255).astype(np.uint8)
    return bytes(simplejpeg.encode_jpeg(cv2.resize(pixels, (32, 32)), 90, "RGB", "444"))


class Trainings:
    """Copies of one packed dataset, and what trainings over them leave."""

    def __init__(self, folder: Path, packed: Pipeline) -> None:
        self.folder, self.packed = folder, packed
        self._num_copies = 0

    def copy(self, **changes: Any) -> Training:
        self._num_copies += 1
        root = self.folder / f"store_{self._num_copies}"
        assert isinstance(self.packed.store, FileStore)
        shutil.copytree(self.packed.store.root, root)
        dataset = self.packed.context.dataset
        dataset = dataset.model_copy(update={"training": TRAINING.model_copy(update=changes)})
        trainer_python = read_deployment(folder=REPOSITORY).trainer_python
        context = StageContext(FileStore(root), dataset, self.packed.context.progress, trainer_python)
        return Training(context, self.packed.keys["verify"])


class Training:
    """The train stage over one copy."""

    def __init__(self, context: StageContext, input_key: str) -> None:
        self.context, self.input_key = context, input_key
        self.keys = locate(context, train.STAGE, input_key).keys

    def run(self) -> TrainedModel:
        key = run_stage(self.context, train.STAGE, self.input_key)
        return TrainedModel.from_json(key, self.context.store.get(key))

    def read(self, name: str) -> bytes:
        key = self.keys.data(name)
        return self.context.store.get(key) if self.context.store.head(key) else b""

    def lines(self) -> list[str]:
        return self.read("metrics.jsonl").decode().splitlines()

    def num_epochs_saved(self) -> int:
        latest = self.read("checkpoint/latest.json")
        return len(json.loads(latest)["epochs"]) if latest else 0

    def logs(self, role: str) -> list[str]:
        return [
            self.context.store.get(info.key).decode()
            for info in self.context.store.list(self.keys.data("logs"))
            if info.key.rpartition("/")[2].startswith(role)
        ]

    @contextmanager
    def kill(self, role: str, num_epochs_saved: int) -> Iterator[Killed]:
        """Kills one process of the gang, from beside it, as soon as the checkpoint has so many epochs."""
        killed = Killed()
        thread = threading.Thread(target=killed.run, args=(self, role, num_epochs_saved))
        thread.start()
        try:
            yield killed
        finally:
            thread.join()


class Killed:
    """What was seen when a process was killed."""

    gang: dict[int, str]
    lines: list[str]
    at: float

    def run(self, training: Training, role: str, num_epochs_saved: int) -> None:
        wait_until(lambda: training.num_epochs_saved() >= num_epochs_saved, "the checkpoint is there", 60)
        self.gang, self.lines = gang_processes(training.keys.data("job.json")), training.lines()
        pid = next(pid for pid, each in self.gang.items() if each == role)
        os.kill(pid, signal.SIGKILL)
        self.at = time.monotonic()


def gang_processes(job_key: str) -> dict[int, str]:
    """The role of each process that this one started for the job."""
    found = {}
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if job_key.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                role = next(entry for entry in environment if entry.startswith(b"DMLC_ROLE="))
                found[int(pid)] = role.partition(b"=")[2].decode()
    return found


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    folder = tmp_path_factory.mktemp("training")
    classes = {
        synset: {f"{number}.JPEG": coloured_noise(synset, number) for number in range(NUM_IMAGES)} for synset in COLOURS
    }
    dataset = settings(
        write_archives(folder / "source", class_tars(classes)),
        validation_per_class=NUM_VALIDATION,
        min_images_per_class=NUM_IMAGES,
        short_edge_pixels=32,
        num_chunks=3,
        training=TRAINING,
    )
    return Trainings(folder, Pipeline(FileStore(folder / "packed"), dataset).run("verify"))


@pytest.fixture(scope="module")
def straight(trainings: Trainings) -> Training:
    """Four epochs without an accident."""
    training = trainings.copy()
    training.run()
    return training


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang, "_SECONDS_BETWEEN_POLLS", 0.1)


def test_the_gang_learns_and_counts_every_validation_image_once(straight: Training) -> None:
    model = straight.run()  # reused
    assert [epoch.epoch for epoch in model.epochs] == [1, 2, 3, 4]
    assert {epoch.num_validation for epoch in model.epochs} == {len(COLOURS) * NUM_VALIDATION}
    assert model.epochs[-1].validation_top1 >= 0.9
    assert model.epochs[-1].train_loss < model.epochs[0].train_loss
    assert [json.loads(line)["validation_top1"] for line in straight.lines()] == [
        epoch.validation_top1 for epoch in model.epochs
    ]


def test_a_worker_that_is_killed_ends_the_gang_and_the_retry_goes_on_to_the_very_same_model(
    trainings: Trainings, straight: Training
) -> None:
    training = trainings.copy()
    with training.kill("worker", num_epochs_saved=2) as killed, pytest.raises(ProcessFailed, match=r"exit code -9"):
        training.run()
    assert sorted(killed.gang.values()) == ["scheduler", "server", "worker", "worker"]
    assert not any(map(is_alive, killed.gang))
    num_done = training.num_epochs_saved()
    assert 2 <= num_done < 4
    model = training.run()
    assert all(f"going on after epoch {num_done}\n" in log for log in training.logs("worker"))
    assert not any("epoch 1:" in log for log in training.logs("worker"))
    assert training.lines()[:2] == killed.lines[:2]  # with their speeds: neither epoch was trained again
    expected = straight.run()
    assert model.parameters.sha256 == expected.parameters.sha256
    assert model.symbol == expected.symbol
    assert model.epochs == expected.epochs


def test_a_retry_after_the_last_epoch_trains_no_more_and_exports_the_same_model(straight: Training) -> None:
    expected, lines = straight.run(), straight.lines()
    for name in ("result.json", "model-symbol.json", "model-0000.params"):
        straight.context.store.delete(straight.keys.data(name))
    straight.context.store.delete(straight.keys.manifest)
    assert straight.run() == expected
    assert straight.lines() == lines


def test_one_worker_with_two_servers_trains_too(trainings: Trainings) -> None:
    model = trainings.copy(num_workers=1, num_servers=2, num_epochs=2).run()
    assert [epoch.num_validation for epoch in model.epochs] == [len(COLOURS) * NUM_VALIDATION] * 2


def test_a_server_that_is_killed_ends_the_stage_within_seconds_and_nothing_stays(trainings: Trainings) -> None:
    training = trainings.copy()
    with (
        training.kill("server", num_epochs_saved=1) as killed,
        pytest.raises(ProcessFailed, match=r"server_0 on localhost ended with exit code -9"),
    ):
        training.run()
    assert time.monotonic() - killed.at < 15
    assert len(killed.gang) == 4 and not any(map(is_alive, killed.gang))
    assert training.context.store.head(training.keys.manifest) is None


def test_a_chunk_that_is_gone_ends_the_stage_with_what_the_worker_said(trainings: Trainings) -> None:
    training = trainings.copy()
    dataset: DatasetManifest = trainings.packed.manifest("pack_recordio", DatasetManifest)
    rec_key = trainings.packed.data_key("pack_recordio", f"{dataset.chunks[1].name}.rec")
    training.context.store.delete(rec_key)
    with pytest.raises(ProcessFailed) as caught:
        training.run()
    assert f"DataError: {rec_key}: no such object\n" in str(caught.value)
    assert gang_processes(training.keys.data("job.json")) == {}
