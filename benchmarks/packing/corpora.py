"""Corpora of JPEGs like ImageNet's: crops of real photographs, scaled down, encoded as cameras and websites do.

    .local/bench/corpora/{name}_{count}_{key}/
        images/n00000000/n00000000_00000000.JPEG …    what im2rec reads
        archive.tar                                   the same images as a tar of class tars, what the pipeline reads

The same photographs, name and count give the same bytes, on any number of processes; a corpus that is there is not
made again.
"""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
import random
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import cv2
from cv2.typing import MatLike

from benchmarks.packing.photographs import fetch_photographs

FOLDER = Path(".local/bench/corpora")
IMAGES_PER_CLASS = 100
_VERSION = 1
_LEAST_CROP = 0.6  # of the largest that the photograph has in the image's shape, but never fewer pixels than the image
_SAMPLINGS = {
    cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420: 60,
    cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444: 30,
    cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422: 10,
}
_PROGRESSIVE = 0.05
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Recipe:
    """(width, height) → how many in a hundred images; least and greatest JPEG quality."""

    sizes: dict[tuple[int, int], int]
    qualities: tuple[int, int]


RECIPES = {
    # ILSVRC 2012: nearly all have a long edge of 500 pixels and some 110 kB.
    "ilsvrc": Recipe(
        {(500, 375): 55, (375, 500): 18, (500, 333): 14, (333, 500): 6, (500, 400): 4, (500, 500): 3}, (92, 97)
    ),
    # fall11: three in four have a short edge of 480 pixels or less, the others are as large as a page's photograph.
    "fall11": Recipe(
        {
            (500, 375): 37,
            (375, 500): 12,
            (500, 333): 10,
            (333, 500): 4,
            (400, 300): 6,
            (640, 480): 6,
            (800, 600): 9,
            (1024, 768): 9,
            (1280, 960): 5,
            (1600, 1200): 2,
        },
        (90, 97),
    ),
    # A camera's own files.
    "large": Recipe({(2048, 1536): 100}, (91, 97)),
}


@dataclass(frozen=True)
class Photograph:
    """A photograph, its size in pixels, and how busy it is: bytes a pixel, encoded at a quarter of its size."""

    path: Path
    width: int
    height: int
    detail: float


@dataclass(frozen=True)
class PlannedImage:
    """One image: the box (left, top, width, height) of which photograph becomes which size, and how it is encoded."""

    member: str
    photograph: Photograph
    box: tuple[int, int, int, int]
    size: tuple[int, int]
    quality: int
    sampling: int
    progressive: bool


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk."""

    name: str
    count: int
    folder: Path

    @property
    def images(self) -> Path:
        return self.folder / "images"

    @property
    def archive(self) -> Path:
        return self.folder / "archive.tar"


def prepare_corpus(name: str, count: int, *, archive_only: bool = False) -> Corpus:
    """Makes the corpus where it is not there yet, on all cores; with `archive_only` in half the space."""
    paths = fetch_photographs()
    parts = (name, str(count), _key_of(paths), *(["archive"] if archive_only else []))
    corpus = Corpus(name, count, FOLDER.absolute() / "_".join(parts))
    if not corpus.folder.exists():
        partial = Corpus(name, count, corpus.folder.with_suffix(".partial"))
        shutil.rmtree(partial.folder, ignore_errors=True)
        _render(plan_images(name, count, [_open_photograph(path) for path in paths]), partial.images)
        _write_archive(partial.images, partial.archive)
        if archive_only:
            shutil.rmtree(partial.images)
        partial.folder.replace(corpus.folder)
    return corpus


def plan_images(name: str, count: int, photographs: list[Photograph]) -> list[PlannedImage]:
    """What each image is; a larger count begins with the images of a smaller one."""
    return [_plan_image(name, index, photographs) for index in range(count)]


def render_image(image: PlannedImage, pixels: MatLike) -> bytes:
    """The image's JPEG from its photograph's pixels."""
    left, top, width, height = image.box
    crop = pixels[top : top + height, left : left + width]
    options = {
        cv2.IMWRITE_JPEG_QUALITY: image.quality,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR: image.sampling,
        cv2.IMWRITE_JPEG_PROGRESSIVE: int(image.progressive),
    }
    scaled = cv2.resize(crop, image.size, interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", scaled, [value for option in options.items() for value in option])
    return jpeg.tobytes()


def _plan_image(name: str, index: int, photographs: list[Photograph]) -> PlannedImage:
    choice = random.Random(f"{name} {index}")
    recipe = RECIPES[name]
    width, height = _draw(choice, recipe.sizes)
    # Wallpapers are calmer than ImageNet's pictures: the busy ones come more often, until an image has as many bytes.
    weights = {photo: photo.detail**3 for photo in photographs if photo.width >= width and photo.height >= height}
    photograph = _draw(choice, weights)
    most = min(photograph.width / width, photograph.height / height)
    reduction = max(1.0, most * choice.uniform(_LEAST_CROP, 1))
    box_width, box_height = int(width * reduction), int(height * reduction)
    left, top = choice.randint(0, photograph.width - box_width), choice.randint(0, photograph.height - box_height)
    synset = f"n{index // IMAGES_PER_CLASS:08d}"
    return PlannedImage(
        member=f"{synset}/{synset}_{index:08d}.JPEG",
        photograph=photograph,
        box=(left, top, box_width, box_height),
        size=(width, height),
        quality=choice.randint(*recipe.qualities),
        sampling=_draw(choice, _SAMPLINGS),
        progressive=choice.random() < _PROGRESSIVE,
    )


def _draw(choice: random.Random, shares: Mapping[_Item, float]) -> _Item:
    return choice.choices(list(shares), list(shares.values()))[0]


def _open_photograph(path: Path) -> Photograph:
    quarter = cv2.imread(str(path), cv2.IMREAD_REDUCED_COLOR_4 | cv2.IMREAD_IGNORE_ORIENTATION)
    height, width = quarter.shape[:2]
    _, jpeg = cv2.imencode(".jpg", quarter)
    # The decoder rounds up, so this is at most three pixels too few.
    return Photograph(path, 4 * width - 3, 4 * height - 3, len(jpeg) / (width * height))


def _key_of(paths: list[Path]) -> str:
    parts = [_VERSION, IMAGES_PER_CLASS, RECIPES, _SAMPLINGS, _PROGRESSIVE]
    parts += [(path.name, path.stat().st_size) for path in paths]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def _render(plan: list[PlannedImage], folder: Path) -> None:
    by_photograph = defaultdict(list)
    for image in plan:
        by_photograph[image.photograph].append(image)
        (folder / image.member).parent.mkdir(parents=True, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")  # OpenCV's threads do not survive a fork
    with ProcessPoolExecutor(mp_context=spawn, initializer=os.nice, initargs=(10,)) as pool:
        for _ in pool.map(_render_photograph, by_photograph, by_photograph.values(), [folder] * len(by_photograph)):
            pass


def _render_photograph(photograph: Photograph, images: list[PlannedImage], folder: Path) -> None:
    """A photograph is decoded once, and one is in memory at a time."""
    cv2.setNumThreads(1)
    pixels = cv2.imread(str(photograph.path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    for image in images:
        (folder / image.member).write_bytes(render_image(image, pixels))


def _write_archive(images: Path, path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for folder in sorted(images.iterdir()):
            class_tar = _tar([(file.name, file.read_bytes()) for file in sorted(folder.iterdir())])
            _add(archive, f"{folder.name}.tar", class_tar)


def _tar(members: list[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in members:
            _add(tar, name, data)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))
