"""A dataset of a few small images, and runs of the pipeline over it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from imagenet_ops.adapters.object_store import ObjectInfo, ObjectStore, ObjectWriter
from imagenet_ops.commit import read
from imagenet_ops.local_run import run_pipeline
from imagenet_ops.manifests import Manifest
from imagenet_ops.progress import LogProgress
from imagenet_ops.settings import DatasetSettings
from imagenet_ops.stages.pipeline import STAGE_NAMES
from imagenet_ops.stages.stage import StageContext
from tests.builders import class_tars, jpeg, png
from tests.fakes import MemoryStore

Classes = Mapping[str, Mapping[str, bytes]]


def tiny_classes() -> dict[str, dict[str, bytes]]:
    """Two classes of six images, one of two, and in the first also a text and an empty file."""
    classes = {
        synset: {f"{synset}_{number}.JPEG": jpeg(20 + number, 16, seed=10 * position + number) for number in range(6)}
        for position, synset in enumerate(["n01", "n02"])
    }
    classes["n01"] |= {"notes.txt": b"Not an image.\n", "empty.JPEG": b""}
    classes["n02"]["n02_2.JPEG"] = png(16, 24, seed=99)
    return classes | {"n03": {f"n03_{number}.JPEG": jpeg(16, 16, seed=number) for number in range(2)}}


def write_archives(folder: Path, *archives: bytes) -> list[Path]:
    """The archives as files, always of the same age, so that the same content is the same source."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"archive_{index}.tar" for index in range(len(archives))]
    for path, data in zip(paths, archives, strict=True):
        path.write_bytes(data)
        os.utime(path, (1e9, 1e9))
    return paths


def settings(paths: list[Path], **changes: Any) -> DatasetSettings:
    values = {
        "name": "tiny",
        "title": "A few small images",
        "sources": [{"url": path.as_uri()} for path in paths],
        "layout": "class_tars",
        "min_images_per_class": 4,
        "validation_per_class": 2,
        "seed": 7,
        "short_edge_pixels": 12,
        "num_chunks": 2,
    }
    return DatasetSettings.model_validate(values | changes)


class Pipeline:
    """A store, the settings of a dataset, and what the stages left."""

    def __init__(self, store: ObjectStore, dataset: DatasetSettings) -> None:
        self.store = store
        self.context = StageContext(store, dataset, LogProgress(), Path("no trainer"))
        self.keys: dict[str, str] = {}

    def run(self, last_stage: str = "verify", jobs: int = 1) -> Pipeline:
        for outcome in run_pipeline(self.context, last_stage, jobs):
            assert outcome.manifest_key is not None
            self.keys[outcome.stage] = outcome.manifest_key
        return self

    def manifest(self, stage: str, kind: type[Any]) -> Any:
        assert issubclass(kind, Manifest)
        return read(self.store, self.keys[stage], kind)

    def data_key(self, stage: str, name: str) -> str:
        return f"{self.keys[stage].removesuffix('manifest.json')}data/{name}"

    def data(self, stage: str, name: str) -> bytes:
        return self.store.get(self.data_key(stage, name))


def run_tiny(
    folder: Path,
    classes: Classes | None = None,
    last_stage: str = "verify",
    store: ObjectStore | None = None,
    **changes: Any,
) -> Pipeline:
    """The pipeline over one archive of class tars in a store in memory."""
    paths = write_archives(folder, class_tars(tiny_classes() if classes is None else classes))
    return Pipeline(store or MemoryStore(), settings(paths, **changes)).run(last_stage)


def contents(store: ObjectStore) -> dict[str, bytes]:
    return {info.key: store.get(info.key) for info in store.list("")}


def copy_of(store: ObjectStore) -> MemoryStore:
    copy = MemoryStore()
    for key, data in contents(store).items():
        copy.put(key, data)
    return copy


def stage_of(key: str) -> str:
    stage = key.split("/")[1]
    assert stage in STAGE_NAMES
    return stage


class Crash(Exception):
    """What a CrashingStore raises; no error of the package."""


class CrashingStore:
    """A store whose process dies at its write number `crash_at`, counted from 1: just before it, or just after."""

    def __init__(self, store: ObjectStore, crash_at: int, object_appears: bool) -> None:
        self._store = store
        self._left = crash_at
        self._object_appears = object_appears
        self.url = store.url

    def get(self, key: str) -> bytes:
        return self._store.get(key)

    def get_range(self, key: str, offset: int, num_bytes: int) -> bytes:
        return self._store.get_range(key, offset, num_bytes)

    def head(self, key: str) -> ObjectInfo | None:
        return self._store.head(key)

    def put(self, key: str, data: bytes) -> None:
        with self.open_writer(key) as writer:
            writer.write(data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._crash_if_due(object_appeared=False)
        written = self._store.put_if_absent(key, data)
        self._crash_if_due(object_appeared=True)
        return written

    @contextmanager
    def open_writer(self, key: str) -> Iterator[ObjectWriter]:
        with self._store.open_writer(key) as writer:
            yield writer
            self._crash_if_due(object_appeared=False)
        self._crash_if_due(object_appeared=True)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return self._store.list(prefix)

    def delete(self, key: str) -> None:
        self._store.delete(key)

    def local_path(self, key: str) -> Path | None:
        return self._store.local_path(key)

    def _crash_if_due(self, *, object_appeared: bool) -> None:
        if not object_appeared:
            self._left -= 1
        if self._left < 0 or (self._left == 0 and object_appeared == self._object_appears):
            raise Crash(f"at a write, object there: {object_appeared}")


def with_damage() -> dict[str, dict[str, bytes]]:
    """The tiny classes with, in place of three images, two cut short and one with a wrong checksum."""
    classes = tiny_classes()
    classes["n01"]["n01_0.JPEG"] = jpeg(64, 64)[:-200]
    classes["n02"]["n02_0.JPEG"] = jpeg(64, 64)[:-100]
    whole = bytearray(png(20, 20))
    whole[60] ^= 0xFF
    classes["n02"]["n02_1.JPEG"] = bytes(whole)
    return classes
