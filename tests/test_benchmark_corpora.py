"""The benchmark's corpora, cut from two made-up photographs."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from benchmarks.packing import photographs
from benchmarks.packing.corpora import IMAGES_PER_CLASS, Photograph, plan_images, prepare_corpus


@pytest.fixture
def two_photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    photographs.FOLDER.mkdir(parents=True)
    for seed in range(2):
        small = np.random.default_rng(seed).integers(0, 256, (60, 80, 3), np.uint8)
        cv2.imwrite(str(photographs.FOLDER / f"{seed}.jpg"), cv2.resize(small, (800, 600)))


@pytest.mark.usefixtures("two_photographs")
def test_the_archive_holds_what_the_folder_holds() -> None:
    corpus = prepare_corpus("ilsvrc", 5)
    in_folder = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in corpus.images.rglob("*.JPEG")}
    assert _read_archive(corpus.archive) == in_folder
    assert len(in_folder) == corpus.count


@pytest.mark.usefixtures("two_photographs")
def test_a_corpus_made_again_has_the_same_bytes_and_one_that_is_there_is_not_made_again() -> None:
    first = prepare_corpus("ilsvrc", 5)
    content, made = first.archive.read_bytes(), first.archive.stat()
    assert prepare_corpus("ilsvrc", 5).archive.stat().st_mtime_ns == made.st_mtime_ns
    first.folder.rename(first.folder.with_name("aside"))
    assert prepare_corpus("ilsvrc", 5).archive.read_bytes() == content
    assert prepare_corpus("ilsvrc", 5, archive_only=True).archive.read_bytes() == content


def test_a_larger_corpus_begins_with_the_images_of_a_smaller_one() -> None:
    photos = [Photograph(Path(f"{index}.jpg"), 3000, 2000, detail=0.1 + index) for index in range(3)]
    plan = plan_images("fall11", 2 * IMAGES_PER_CLASS, photos)
    assert plan[:7] == plan_images("fall11", 7, photos)
    assert len({image.member.split("/")[0] for image in plan}) == 2


def test_every_crop_lies_in_its_photograph_and_none_is_enlarged() -> None:
    photos = [Photograph(Path("small.jpg"), 640, 480, 1.0), Photograph(Path("large.jpg"), 2100, 1600, 1.0)]
    for image in plan_images("fall11", 300, photos):
        left, top, width, height = image.box
        assert 0 <= left <= image.photograph.width - width
        assert 0 <= top <= image.photograph.height - height
        assert width >= image.size[0]
        assert height >= image.size[1]


def test_without_photographs_or_the_packages_the_advice_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=str(photographs.FOLDER)):
        photographs.fetch_photographs()


def _read_archive(path: Path) -> dict[str, bytes]:
    members = {}
    with tarfile.open(path) as archive:
        for class_tar in archive:
            content = archive.extractfile(class_tar)
            assert content is not None
            with tarfile.open(fileobj=io.BytesIO(content.read())) as images:
                for member in images:
                    image = images.extractfile(member)
                    assert image is not None
                    members[f"{class_tar.name.removesuffix('.tar')}/{member.name}"] = image.read()
    return members
