"""The demo's archive: real images in ImageNet's layout, odd members included, and what the pipeline makes of them."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from demo.archive import ARCHIVE_NAME, NAMES_NAME, write_archive
from imagenet_ops.adapters.fast_codec import FastCodec
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.catalogue import load_dataset
from imagenet_ops.manifests import ClassManifest, ImageIndex, SplitManifest
from tests.fakes import MemoryStore
from tests.tiny_dataset import Pipeline

pytest.importorskip("elpv_dataset", reason="the demo's images are not installed")
NUM_IMAGES = {
    "n91000000": 588,
    "n91000033": 117,
    "n91000067": 56,
    "n91000100": 313,
    "n91010000": 920,
    "n91010033": 178,
    "n91010067": 50,
    "n91010100": 402,
}
CATALOGUE_FILE = Path(__file__).parents[1] / "dags" / "datasets" / "demo.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "made" / "on demand"
    write_archive(folder)
    return folder


@pytest.fixture(scope="module")
def odd_class(folder: Path) -> dict[str, bytes]:
    """The members of the class that has odd ones, in their order."""
    with tarfile.open(folder / ARCHIVE_NAME) as archive:
        member = archive.extractfile("n91000000.tar")
        assert member is not None
        with tarfile.open(fileobj=io.BytesIO(member.read())) as inner:
            return {info.name: _bytes(inner, info) for info in inner}


def _bytes(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(info)
    assert file is not None
    return file.read()


def test_the_archive_is_a_tar_of_one_tar_a_class(folder: Path) -> None:
    with tarfile.open(folder / ARCHIVE_NAME) as archive:
        assert archive.getnames() == [f"{synset}.tar" for synset in NUM_IMAGES]
        assert {(info.mtime, info.uid, info.uname) for info in archive} == {(0, 0, "")}


def test_every_class_has_its_name(folder: Path) -> None:
    assert (folder / NAMES_NAME).read_text() == (
        "n91000000\tmonocrystalline cell, 0 % likely defective\n"
        "n91000033\tmonocrystalline cell, 33 % likely defective\n"
        "n91000067\tmonocrystalline cell, 67 % likely defective\n"
        "n91000100\tmonocrystalline cell, 100 % likely defective\n"
        "n91010000\tpolycrystalline cell, 0 % likely defective\n"
        "n91010033\tpolycrystalline cell, 33 % likely defective\n"
        "n91010067\tpolycrystalline cell, 67 % likely defective\n"
        "n91010100\tpolycrystalline cell, 100 % likely defective\n"
    )


def test_a_second_call_touches_nothing_and_a_lost_archive_comes_back_with_the_same_bytes(folder: Path) -> None:
    archive = folder / ARCHIVE_NAME
    first, digest = archive.stat().st_mtime_ns, hashlib.sha256(archive.read_bytes()).hexdigest()
    names_age = (folder / NAMES_NAME).stat().st_mtime_ns
    write_archive(folder)
    assert archive.stat().st_mtime_ns == first
    archive.unlink()
    write_archive(folder)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == digest
    assert (folder / NAMES_NAME).stat().st_mtime_ns == names_age
    assert sorted(path.name for path in folder.iterdir()) == [ARCHIVE_NAME, NAMES_NAME]


def test_the_odd_members_are_two_damaged_images_three_unusual_ones_and_two_that_are_none(
    odd_class: dict[str, bytes],
) -> None:
    names = list(odd_class)
    cut, flipped, png, cmyk, umlaut = names[:5]
    assert names[-2:] == ["n91000000_readme.txt", "n91000000_empty.JPEG"]
    assert odd_class[names[-1]] == b""
    for name, reason in ((cut, "JPEG cut short"), (flipped, "JPEG damaged")):
        with pytest.raises(UnusableImage, match=f"^{reason}$"):
            FastCodec(96, 90).transcode(odd_class[name])
    assert png.endswith(".JPEG") and odd_class[png].startswith(b"\x89PNG")
    assert " schöne Zelle für Prüfung " in umlaut
    for name in (png, cmyk, umlaut):
        stored = FastCodec(96, 90).transcode(odd_class[name])
        assert (stored.width, stored.height, stored.treatment) == (96, 96, "shrunk")


def test_the_catalogues_demo_keeps_six_classes_of_this_archive(folder: Path) -> None:
    """Its settings as they are, but for where the archive lies."""
    sources = {
        "sources": [{"url": (folder / ARCHIVE_NAME).as_uri()}],
        "synset_names": {"url": (folder / NAMES_NAME).as_uri()},
    }
    pipeline = Pipeline(MemoryStore(), load_dataset(CATALOGUE_FILE, sources)).run("sample_validation")
    index: ImageIndex = pipeline.manifest("untar", ImageIndex)
    assert index.num_images == 2_624
    assert index.num_rejected_by_reason == {"empty": 1, "text": 1}
    classes: ClassManifest = pipeline.manifest("filter_rare_classes", ClassManifest)
    assert {entry.synset: entry.num_images for entry in classes.kept} == {
        synset: count for synset, count in NUM_IMAGES.items() if count >= 100
    }
    assert {entry.synset: entry.num_images for entry in classes.dropped} == {"n91000067": 56, "n91010067": 50}
    split: SplitManifest = pipeline.manifest("sample_validation", SplitManifest)
    assert (split.num_train, split.num_validation) == (2_624 - 106 - 300, 300)
