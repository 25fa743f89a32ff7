"""filter_rare_classes: who stays, and under which label."""

from __future__ import annotations

from pathlib import Path

import pytest

from imagenet_ops.errors import DataError
from imagenet_ops.manifests import ClassManifest, DroppedClass, LabelledClass
from tests.builders import class_tars, jpeg
from tests.fakes import MemoryStore
from tests.tiny_dataset import Pipeline, settings, write_archives

IMAGE = jpeg(8, 8)


def keep(folder: Path, sizes: dict[str, int], names: bytes | None = None, minimum: int = 3) -> ClassManifest:
    """The manifest for classes of these sizes; each also holds a member that is no image."""
    classes = {
        synset: {f"{number}.JPEG": IMAGE for number in range(size)} | {"text.JPEG": b"text"}
        for synset, size in sizes.items()
    }
    changes: dict[str, object] = {"min_images_per_class": minimum}
    paths = write_archives(folder, class_tars(classes))
    if names is not None:
        (folder / "names.tsv").write_bytes(names)
        changes["synset_names"] = {"url": (folder / "names.tsv").as_uri()}
    pipeline = Pipeline(MemoryStore(), settings(paths, **changes)).run("filter_rare_classes")
    manifest = pipeline.manifest("filter_rare_classes", ClassManifest)
    assert isinstance(manifest, ClassManifest)
    return manifest


def test_a_class_with_exactly_the_least_number_of_images_stays(tmp_path: Path) -> None:
    manifest = keep(tmp_path, {"n03": 3, "n01": 4, "n02": 2})
    assert manifest.kept == [
        LabelledClass(label=0, synset="n01", name="n01", num_images=4),
        LabelledClass(label=1, synset="n03", name="n03", num_images=3),
    ]
    assert manifest.dropped == [DroppedClass(synset="n02", name="n02", num_images=2)]


def test_a_member_that_is_no_image_does_not_count(tmp_path: Path) -> None:
    assert [entry.synset for entry in keep(tmp_path, {"n01": 2, "n02": 3}).kept] == ["n02"]


def test_an_empty_class_is_among_the_dropped(tmp_path: Path) -> None:
    assert keep(tmp_path, {"n01": 0, "n02": 3}).dropped == [DroppedClass(synset="n01", name="n01", num_images=0)]


def test_a_class_spread_over_two_archives_is_counted_as_a_whole(tmp_path: Path) -> None:
    halves = [class_tars({"n01": {f"{half}_{number}": IMAGE for number in range(2)}}) for half in "ab"]
    pipeline = Pipeline(MemoryStore(), settings(write_archives(tmp_path, *halves), min_images_per_class=4))
    kept = pipeline.run("filter_rare_classes").manifest("filter_rare_classes", ClassManifest).kept
    assert kept == [LabelledClass(label=0, synset="n01", name="n01", num_images=4)]


def test_no_class_with_images_enough_is_an_error_that_says_how_many_there_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"tiny: no class has 5 images \(min_images_per_class\); the most is 4"):
        keep(tmp_path, {"n01": 4, "n02": 1}, minimum=5)


def test_names_come_from_the_table_and_a_class_without_one_is_called_by_its_synset(tmp_path: Path) -> None:
    manifest = keep(tmp_path, {"n01": 3, "n02": 3, "n03": 1}, "n01\tgroße Käfer\nn03\tant\n\nn99\tno such\n".encode())
    assert [entry.name for entry in manifest.kept] == ["große Käfer", "n02"]
    assert [entry.name for entry in manifest.dropped] == ["ant"]


def test_a_table_line_without_a_tab_is_told_by_its_number(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data/names\.tsv: line 2: expected synset, tab, name; found 'n02 ant'"):
        keep(tmp_path, {"n01": 3}, b"n01\tbee\nn02 ant\n")


def test_a_table_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"synset names data/names\.tsv: not UTF-8 at byte 5"):
        keep(tmp_path, {"n01": 3}, b"n01\tK\xe4fer\n")
