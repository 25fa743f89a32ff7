"""What we packed, read by mxnet itself: every chunk, every record, with the label that was planned."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.adapters.object_store import ObjectStore, open_store
from imagenet_ops.adapters.tables import read_table
from imagenet_ops.commit import read
from imagenet_ops.deployment import read_deployment
from imagenet_ops.keys import StageKeys
from imagenet_ops.manifests import DatasetManifest
from tests.builders import jpeg
from tests.tiny_dataset import run_tiny

pytestmark = pytest.mark.trainer
REPOSITORY = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("read_chunks.py")


def read_by_mxnet(store_url: str, manifest_key: str) -> Any:
    trainer_python = read_deployment(folder=REPOSITORY).trainer_python
    result = subprocess.run(
        [str(trainer_python), str(SCRIPT), store_url, manifest_key],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def planned(store: ObjectStore, manifest_key: str) -> dict[str, list[tuple[int, int]]]:
    """(record id, label) of each chunk's plan, without those that were skipped."""
    keys = StageKeys.containing(manifest_key)
    expected = {}
    for chunk in read(store, manifest_key, DatasetManifest).chunks:
        skipped = set(read_table(store, keys.inside(chunk.skipped.key), ["record_id"])["record_id"])
        rows = read_table(store, keys.inside(chunk.plan_key), ["record_id", "label"]).iter_rows()
        expected[chunk.name] = [(record_id, label) for record_id, label in rows if record_id not in skipped]
    return expected


def compare(store_url: str, manifest_key: str) -> dict[str, int]:
    """Records of each chunk. Raises where mxnet finds anything other than the plan says."""
    expected = planned(open_store(store_url), manifest_key)
    found = read_by_mxnet(store_url, manifest_key)
    assert list(found) == list(expected)
    for name, rows in expected.items():
        assert found[name]["keys"] == [record_id for record_id, _ in rows], name
        assert found[name]["ids"] == [record_id for record_id, _ in rows], name
        assert found[name]["labels"] == [label for _, label in rows], name
        assert found[name]["iterated_labels"] == [label for _, label in rows], name
    return {name: len(rows) for name, rows in expected.items()}


def test_mxnet_finds_in_every_chunk_the_planned_ids_and_labels_but_the_skipped_ones(tmp_path: Path) -> None:
    classes = {
        f"n0{label}": {f"{number}.JPEG": jpeg(20 + number, 16, seed=100 * label + number) for number in range(9)}
        for label in range(3)
    }
    classes["n01"]["3.JPEG"] = jpeg(64, 64)[:-200]  # cut short: skipped
    store = FileStore(tmp_path / "a store")
    pipeline = run_tiny(tmp_path / "source", classes, "pack_recordio", store, num_chunks=4)
    sizes = compare(store.url, pipeline.keys["pack_recordio"])
    assert list(sizes) == [*(f"train_{number:05d}" for number in range(4)), "validation_00000"]
    assert sum(sizes.values()) == 3 * 9 - 1 and min(sizes.values()) > 0
