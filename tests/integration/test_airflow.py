"""The pipeline through a real Airflow with its own PostgreSQL: one start for all tests here."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from imagenet_ops.deployment import read_deployment
from imagenet_ops.local_airflow.airflow import LocalAirflow
from imagenet_ops.local_airflow.errors import RestError
from imagenet_ops.local_airflow.rest import AirflowRest
from imagenet_ops.local_airflow.rest_values import DagRun, TaskInstance
from imagenet_ops.local_airflow.settings import LocalAirflowSettings
from imagenet_ops.stages.pipeline import STAGE_NAMES
from tests.builders import class_tars, jpeg

REPOSITORY = Path(__file__).parents[2]
RUN_SECONDS = 240
IMAGES_PER_CLASS = 60
SETTINGS = {
    "title": "Noise in two classes",
    "layout": "class_tars",
    "min_images_per_class": 20,
    "validation_per_class": 10,
    "short_edge_pixels": 900,  # large, so that a chunk takes long enough to be killed in the middle
    "num_chunks": 1,
    "training": {
        "network": "resnet",
        "num_layers": 10,
        "width": 0.25,
        "image_pixels": 32,
        "num_epochs": 1,
        "num_workers": 1,
        "num_servers": 1,
    },
}


@dataclass
class Installation:
    """An Airflow over its own catalogue and store."""

    airflow: LocalAirflow
    rest: AirflowRest
    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def run(self, dag_id: str, **conf: object) -> tuple[DagRun, dict[str, list[TaskInstance]]]:
        return self.finish(self.rest.trigger(dag_id, conf))

    def finish(self, run: DagRun) -> tuple[DagRun, dict[str, list[TaskInstance]]]:
        """The finished run, and its task instances by task id."""
        run = self.rest.wait_for_run(run.dag_id, run.run_id, timeout_seconds=RUN_SECONDS)
        tasks: dict[str, list[TaskInstance]] = {}
        for task in self.rest.list_tasks(run.dag_id, run.run_id):
            tasks.setdefault(task.task_id, []).append(task)
        return run, tasks

    def returned(self, task: TaskInstance) -> object:
        """What a task left in XCom."""
        path = f"/api/v2/dags/{task.dag_id}/dagRuns/{task.run_id}/taskInstances/{task.task_id}/xcomEntries/return_value"
        value: object = self.rest.call("GET", path)["value"]
        return value


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    # A short path: PostgreSQL's socket lies below it.
    with tempfile.TemporaryDirectory(prefix="io_") as name:
        folder = Path(name)
        write_catalogue(folder)
        airflow = LocalAirflow(
            LocalAirflowSettings(
                home=folder / "airflow",
                dags_folder=folder / "dags",
                plugins_folder=None,
                store_url=(folder / "store").as_uri(),
                trainer_python=read_deployment(folder=REPOSITORY).trainer_python,
                port=0,
            )
        )
        with airflow, airflow.rest() as rest:
            rest.wait_for_dag("noise")
            yield Installation(airflow, rest, folder)
        left = [process.name for process in processes() if mentions(process, folder)]
        assert left == []


def write_catalogue(folder: Path) -> None:
    """One dataset that is right, one whose archive is none, and one with a mistake in its file."""
    classes = {
        synset: {
            f"{synset}_{number}.JPEG": jpeg(1200, 1000, 100 * position + number) for number in range(IMAGES_PER_CLASS)
        }
        for position, synset in enumerate(["n01", "n02"])
    }
    archive = folder / "noise.tar"
    archive.write_bytes(class_tars(classes))
    (folder / "page.tar").write_bytes(b"<html>Please log in</html>" * 100)
    catalogue = folder / "dags" / "datasets"
    catalogue.mkdir(parents=True)
    shutil.copy(REPOSITORY / "dags" / "image_datasets.py", folder / "dags")
    for name, source, extra in (
        ("noise", archive, {}),
        ("page", folder / "page.tar", {}),
        ("broken", archive, {"jpeg_qualty": 90}),
    ):
        text = yaml.safe_dump(SETTINGS | {"sources": [{"url": source.as_uri()}]} | extra)
        (catalogue / f"{name}.yaml").write_text(text)


def processes() -> Iterator[Path]:
    return (path for path in Path("/proc").iterdir() if path.name.isdigit())


def mentions(process: Path, folder: Path) -> bool:
    try:
        return str(folder).encode() in (process / "environ").read_bytes()
    except OSError:
        return False


def listing(store: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every object."""
    files = [path for path in store.rglob("*") if path.is_file()]
    return {path.relative_to(store).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def chunk_digests(store: Path, quality: int | None = None) -> dict[str, str]:
    """File name → SHA-256 of every chunk file; of the packing with `quality` where there are several."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for plan in store.glob("noise/pack_recordio/*/plan.json")
        if quality in (None, json.loads(plan.read_text())["settings"]["jpeg_quality"])
        for path in sorted((plan.parent / "data").iterdir())
        if path.suffix in (".rec", ".idx", ".lst")
    }


def run_without_airflow(installation: Installation, store: Path, *options: str) -> set[str]:
    """`imagenet-ops run all` up to its last stage; returns the manifests' keys."""
    environment = os.environ | {
        "IMAGENET_OPS_STORE_URL": store.as_uri(),
        "IMAGENET_OPS_CATALOGUE": str(installation.folder / "dags" / "datasets"),
        "IMAGENET_OPS_TRAINER_PYTHON": str(read_deployment(folder=REPOSITORY).trainer_python),
    }
    command = [sys.executable, "-m", "imagenet_ops.cli", "run", "all", "--dataset", "noise", *options]
    subprocess.run(command, env=environment, check=True, capture_output=True, cwd=REPOSITORY)
    return {path.relative_to(store).as_posix() for path in store.glob("noise/*/*/manifest.json")}


def find_packing_process(store: Path) -> int:
    """The process that has a chunk open for writing: the one that runs the stage, whatever started it."""
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        for process in processes():
            if any(is_chunk_under_way(target, store) for target in open_files(process)):
                return int(process.name)
        time.sleep(0.02)
    raise AssertionError("no process packs")


def open_files(process: Path) -> list[Path]:
    try:
        return [link.readlink() for link in (process / "fd").iterdir()]
    except OSError:
        return []


def is_chunk_under_way(target: Path, store: Path) -> bool:
    return target.is_relative_to(store) and ".rec." in target.name and target.exists() and target.stat().st_size > 0


def test_a_run_without_a_date_succeeds_and_hands_on_keys_only(installation: Installation) -> None:
    run, tasks = installation.run("noise")
    assert run.state == "success", {name: [task.state for task in found] for name, found in tasks.items()}
    manifests = {path.parts[-3] for path in installation.store.glob("noise/*/*/manifest.json")}
    assert manifests == set(STAGE_NAMES)
    for name in ("download", "untar.finish", "filter_rare_classes", "pack_recordio.finish", "verify", "train"):
        key = installation.returned(tasks[name][0])
        assert isinstance(key, str)
        assert (installation.store / key).is_file()
    parts = installation.returned(tasks["pack_recordio.plan"][0])
    assert isinstance(parts, list)
    assert [Path(part).name for part in parts] == ["train_00000.json", "validation_00000.json"]
    assert {task.rendered_map_index for task in tasks["pack_recordio.part"]} == {"train_00000", "validation_00000"}


def test_the_command_line_gives_the_same_fingerprints_and_the_same_chunks(installation: Installation) -> None:
    store = installation.folder / "second_store"
    keys = run_without_airflow(installation, store)
    assert keys == {
        path.relative_to(installation.store).as_posix() for path in installation.store.glob("*/*/*/manifest.json")
    }
    assert len(keys) == len(STAGE_NAMES)
    assert chunk_digests(store) == chunk_digests(installation.store)


def test_a_second_run_writes_nothing(installation: Installation) -> None:
    before = listing(installation.store)
    run, tasks = installation.run("noise")
    assert run.state == "success"
    assert listing(installation.store) == before
    assert [task.state for task in tasks["pack_recordio.part"]] == ["skipped"]


def test_a_packing_process_that_is_killed_is_tried_again_and_leaves_the_same_chunks(installation: Installation) -> None:
    run = installation.rest.trigger("noise", {"jpeg_quality": 91})
    os.kill(find_packing_process(installation.store), 9)
    run, tasks = installation.finish(run)
    assert run.state == "success"
    assert max(task.try_number for task in tasks["pack_recordio.part"]) == 2
    undisturbed = installation.folder / "third_store"
    run_without_airflow(installation, undisturbed, "--set", "jpeg_quality=91", "--set", "training.num_epochs=1")
    assert chunk_digests(installation.store, quality=91) == chunk_digests(undisturbed)
    assert not list(installation.store.rglob("*.partial"))


def test_the_form_refuses_a_value_out_of_bounds(installation: Installation) -> None:
    with pytest.raises(RestError) as caught:
        installation.rest.trigger("noise", {"num_epochs": 0})
    assert caught.value.status == 400


def test_an_unknown_parameter_fails_the_first_task_at_once(installation: Installation) -> None:
    run, tasks = installation.run("noise", epochs=3)
    (download,) = tasks["download"]
    assert (run.state, download.state, download.try_number) == ("failed", "failed", 1)
    assert "unknown parameter epochs; known: min_images_per_class" in installation.rest.read_log(download)


def test_an_archive_that_is_none_fails_at_once_and_is_named(installation: Installation) -> None:
    run, tasks = installation.run("page")
    (plan,) = tasks["untar.plan"]
    assert (run.state, plan.state, plan.try_number) == ("failed", "failed", 1)
    assert "000_page.tar: expected an uncompressed tar" in installation.rest.read_log(plan)


def test_a_catalogue_file_with_a_mistake_is_a_dag_that_fails_with_the_mistake(installation: Installation) -> None:
    assert installation.rest.list_import_failures() == []
    run, tasks = installation.run("broken")
    (check,) = tasks["check_settings"]
    assert run.state == "failed"
    assert "broken.yaml: jpeg_qualty: unknown key; did you mean jpeg_quality?" in installation.rest.read_log(check)
