"""The DAG files as Airflow reads them, in a process of their own: what Airflow imports stays out of other tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
TASKS = {
    "download",
    "untar.plan",
    "untar.part",
    "untar.finish",
    "filter_rare_classes",
    "sample_validation",
    "pack_recordio.plan",
    "pack_recordio.part",
    "pack_recordio.finish",
    "verify",
    "train",
}
# Prints what the assertions below need of every DAG in the folder that it is given.
READER = """
import json, sys, time
import airflow.sdk
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

before = set(sys.modules)
start = time.process_time()
bag = DagBag(dag_folder=sys.argv[1])
seconds = time.process_time() - start
heavy = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
dags = {}
for name, dag in bag.dags.items():
    twice = [json.dumps(DagSerialization.serialize_dag(dag), sort_keys=True, default=str) for _ in range(2)]
    dags[name] = {
        "tasks": {task.task_id: [task.owner, task.retries] for task in dag.tasks},
        "params": {key: [param.value, param.description, param.schema] for key, param in dag.params.items()},
        "doc": dag.doc_md,
        "tags": sorted(dag.tags),
        "start": str(dag.start_date),
        "same_twice": twice[0] == twice[1],
    }
print(json.dumps({"errors": bag.import_errors, "seconds": seconds, "modules": heavy, "dags": dags}))
"""


def read_dags(folder: Path, home: Path) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    }
    command = [sys.executable, "-W", "ignore", "-c", READER, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return read_dags(REPOSITORY / "dags", tmp_path_factory.mktemp("airflow"))


@pytest.fixture(scope="module")
def with_broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The shipped DAG file over a catalogue of the demo and three files with a mistake each."""
    folder = tmp_path_factory.mktemp("dags")
    shutil.copy(REPOSITORY / "dags" / "image_datasets.py", folder)
    catalogue = folder / "datasets"
    catalogue.mkdir()
    demo = (REPOSITORY / "dags" / "datasets" / "demo.yaml").read_text()
    (catalogue / "demo.yaml").write_text(demo)
    (catalogue / "misspelt.yaml").write_text(demo.replace("jpeg_quality:", "jpeg_qualty:"))
    (catalogue / "negative.yaml").write_text(demo.replace("short_edge_pixels: 96", "short_edge_pixels: -96"))
    (catalogue / "unknown.yaml").write_text(demo.replace("network: resnet", "network: resnot"))
    return read_dags(folder, tmp_path_factory.mktemp("airflow"))


def test_every_catalogue_file_is_a_dag_without_import_errors(shipped: dict[str, Any]) -> None:
    assert shipped["errors"] == {}
    assert set(shipped["dags"]) == {path.stem for path in (REPOSITORY / "dags" / "datasets").glob("*.yaml")}


def test_task_ids_are_the_stages_names(shipped: dict[str, Any]) -> None:
    assert all(set(dag["tasks"]) == TASKS for dag in shipped["dags"].values())


def test_every_task_has_an_owner_and_is_retried(shipped: dict[str, Any]) -> None:
    for dag in shipped["dags"].values():
        assert all(owner == "imagenet-ops" and retries >= 1 for owner, retries in dag["tasks"].values())


def test_every_field_of_the_form_has_a_title_a_description_and_the_catalogues_value(shipped: dict[str, Any]) -> None:
    params = shipped["dags"]["demo"]["params"]
    for value, description, schema in params.values():
        assert value is not None
        assert schema["title"]
        assert description
        assert schema["type"] == "boolean" or {"minimum", "exclusiveMinimum", "enum"} & set(schema)
    assert params["min_images_per_class"][0] == 100
    assert params["num_epochs"][0] == 25
    assert [key for key, (_, _, schema) in params.items() if "section" not in schema] == [
        "min_images_per_class",
        "validation_per_class",
        "num_epochs",
    ]


def test_a_dag_is_documented_and_its_start_never_moves(shipped: dict[str, Any]) -> None:
    for dag in shipped["dags"].values():
        assert "What is safe" in dag["doc"]
        assert dag["start"] == "2011-09-01 00:00:00+00:00"
        assert dag["same_twice"]


def test_parsing_is_quick_and_imports_nothing_heavy(shipped: dict[str, Any]) -> None:
    heavy = {"mxnet", "numpy", "cv2", "polars", "httpx", "simplejpeg", "boto3"}
    assert heavy.isdisjoint(shipped["modules"])
    assert shipped["seconds"] < 2


def test_a_file_with_a_mistake_becomes_a_dag_that_tells_it_and_leaves_the_others_alone(
    with_broken: dict[str, Any],
) -> None:
    assert with_broken["errors"] == {}
    dags = with_broken["dags"]
    assert set(dags["demo"]["tasks"]) == TASKS
    texts = {
        "misspelt": "misspelt.yaml: jpeg_qualty: unknown key; did you mean jpeg_quality?",
        "negative": "negative.yaml: short_edge_pixels: input should be greater than or equal to 8, given -96",
        "unknown": "unknown.yaml: training.network: input should be 'resnet', 'alexnet', 'inception_v3', 'mobilenet' "
        "or 'vgg', given 'resnot'",
    }
    for name, text in texts.items():
        assert text in dags[name]["doc"]
        assert "Traceback" not in dags[name]["doc"]
        assert "broken settings" in dags[name]["tags"]
        assert set(dags[name]["tasks"]) == {"check_settings"}


def test_a_dag_file_holds_order_and_documentation_only() -> None:
    for path in (REPOSITORY / "dags").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 100
