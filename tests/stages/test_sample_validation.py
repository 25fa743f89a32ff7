"""sample_validation: exactly so many of every kept class, the same ones whatever the order."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from imagenet_ops.manifests import SplitManifest
from tests.builders import class_tars, jpeg
from tests.fakes import MemoryStore
from tests.tiny_dataset import Pipeline, run_tiny, settings, write_archives

IMAGE = jpeg(8, 8)
CLASSES = {synset: {f"{number}.JPEG": IMAGE for number in range(20)} for synset in ("n01", "n02", "n03")}


def sample(folder: Path, classes: dict[str, dict[str, bytes]], **changes: Any) -> set[tuple[str, str]]:
    pipeline = run_tiny(folder, classes, "sample_validation", **changes)
    table = pl.read_parquet(io.BytesIO(pipeline.data("sample_validation", "validation.parquet")))
    assert table.columns == ["synset", "name"]
    assert table.n_unique() == len(table)
    return set(table.iter_rows())


def test_every_kept_class_gives_exactly_the_number_asked_for(tmp_path: Path) -> None:
    classes = CLASSES | {"n00": dict(list(CLASSES["n01"].items())[:5])}
    chosen = sample(tmp_path, classes, min_images_per_class=6, validation_per_class=5)
    assert Counter(synset for synset, _ in chosen) == {"n01": 5, "n02": 5, "n03": 5}
    assert all(name in CLASSES[synset] for synset, name in chosen)


def test_the_counts_in_the_manifest_are_those_of_the_kept_classes(tmp_path: Path) -> None:
    pipeline = run_tiny(tmp_path, CLASSES | {"n00": {"a": IMAGE}}, "sample_validation", validation_per_class=3)
    manifest = pipeline.manifest("sample_validation", SplitManifest)
    assert (manifest.num_train, manifest.num_validation) == (51, 9)


def test_a_class_may_leave_one_single_image_to_train(tmp_path: Path) -> None:
    classes = {"n01": {"a": IMAGE, "b": IMAGE}}
    pipeline = run_tiny(tmp_path, classes, "sample_validation", min_images_per_class=2, validation_per_class=1)
    manifest = pipeline.manifest("sample_validation", SplitManifest)
    assert (manifest.num_train, manifest.num_validation) == (1, 1)


def test_neither_the_order_of_the_archive_nor_its_division_changes_the_sample(tmp_path: Path) -> None:
    expected = sample(tmp_path / "plain", CLASSES)
    backwards = {synset: dict(reversed(members.items())) for synset, members in reversed(CLASSES.items())}
    assert sample(tmp_path / "backwards", backwards) == expected
    halves = [
        class_tars({synset: dict(list(members.items())[half::2]) for synset, members in CLASSES.items()})
        for half in (0, 1)
    ]
    pipeline = Pipeline(MemoryStore(), settings(write_archives(tmp_path / "halves", *halves))).run("sample_validation")
    table = pl.read_parquet(io.BytesIO(pipeline.data("sample_validation", "validation.parquet")))
    assert set(table.iter_rows()) == expected


def test_another_seed_gives_another_sample(tmp_path: Path) -> None:
    assert sample(tmp_path, CLASSES, seed=1) != sample(tmp_path, CLASSES, seed=2)


def test_classes_with_the_same_file_names_are_sampled_independently(tmp_path: Path) -> None:
    chosen = sample(tmp_path, CLASSES, validation_per_class=3)
    names = [frozenset(name for synset, name in chosen if synset == wanted) for wanted in CLASSES]
    assert len(set(names)) > 1


def test_an_added_image_moves_at_most_one_other_out_of_its_class(tmp_path: Path) -> None:
    before = sample(tmp_path / "before", CLASSES)
    for number in range(10):
        more = CLASSES | {"n02": CLASSES["n02"] | {f"more_{number}.JPEG": IMAGE}}
        after = sample(tmp_path / f"after_{number}", more)
        assert len(before - after) <= 1
        assert {synset for synset, _ in before ^ after} <= {"n02"}
