"""The pipeline's profile `im2rec`: its chunks are what im2rec.py writes for their lists and the unpacked archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from imagenet_ops.manifests import DatasetManifest
from tests.builders import jpeg, png
from tests.im2rec.original import run_original
from tests.tiny_dataset import run_tiny

pytestmark = pytest.mark.trainer


def test_a_chunk_is_what_im2rec_writes_for_its_list(tmp_path: Path) -> None:
    classes = {
        synset: {f"{number}.JPEG": jpeg(60 + number, 90 - 3 * number, seed=number) for number in range(12)}
        | {
            "a PNG.JPEG": png(30, 20),
            "CMYK.JPEG": jpeg(40, 50, mode="CMYK"),
            "turned.JPEG": jpeg(80, 50, orientation=6),
        }
        for synset in ("n01", "n02")
    }
    pipeline = run_tiny(tmp_path / "source", classes, profile="im2rec", short_edge_pixels=48, jpeg_quality=85)
    root, lists = tmp_path / "images", tmp_path / "lists"
    lists.mkdir()
    for synset, members in classes.items():
        (root / synset).mkdir(parents=True)
        for name, data in members.items():
            (root / synset / name).write_bytes(data)
    chunks = pipeline.manifest("pack_recordio", DatasetManifest).chunks
    for chunk in chunks:
        (lists / f"{chunk.name}.lst").write_bytes(pipeline.data("pack_recordio", f"{chunk.name}.lst"))
    run_original([[str(lists), str(root), "--resize", "48", "--quality", "85", "--num-thread", "2"]])
    for chunk in chunks:
        for ending in ("rec", "idx"):
            name = f"{chunk.name}.{ending}"
            assert pipeline.data("pack_recordio", name) == (lists / name).read_bytes()
