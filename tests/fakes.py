"""Twins of the outside world: ordinary classes with the real interface, kept honest by the contract tests."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from imagenet_ops.adapters.object_store import ObjectInfo
from imagenet_ops.errors import ObjectNotFound, StorageError


class MemoryStore:
    """An ObjectStore in a dict. `objects` may be looked at and damaged; `writes` names every key written, in order.

    What is written lies in a folder too, at the store's URL, for other processes that open it to read.
    """

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="memory_store_")
        self.url = Path(self._folder.name).as_uri()
        self.objects: dict[str, bytes] = {}
        self.writes: list[str] = []
        self._modified: dict[str, float] = {}
        self._clock = itertools.count(1.0)
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes:
        _check(key)
        try:
            return self.objects[key]
        except KeyError:
            raise ObjectNotFound(f"{key}: no such object ({self.url})") from None

    def get_range(self, key: str, offset: int, num_bytes: int) -> bytes:
        return self.get(key)[offset : offset + num_bytes]

    def head(self, key: str) -> ObjectInfo | None:
        _check(key)
        with self._lock:
            if key not in self.objects:
                return None
            return ObjectInfo(key, len(self.objects[key]), self._modified.get(key, 0.0))

    def put(self, key: str, data: bytes) -> None:
        with self.open_writer(key) as writer:
            writer.write(data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        _check(key)
        with self._lock:
            if key in self.objects:
                return False
            self._store(key, data)
            return True

    @contextmanager
    def open_writer(self, key: str) -> Iterator[MemoryWriter]:
        _check(key)
        writer = MemoryWriter()
        yield writer
        with self._lock:
            self._store(key, b"".join(writer.pieces))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        if prefix:
            _check(prefix)
        for key in sorted(self.objects):
            if (not prefix or key.startswith(f"{prefix}/")) and (info := self.head(key)):
                yield info

    def delete(self, key: str) -> None:
        _check(key)
        with self._lock:
            self.objects.pop(key, None)

    def local_path(self, key: str) -> Path | None:
        _check(key)
        return None

    def _store(self, key: str, data: bytes) -> None:
        path = Path(self._folder.name, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.objects[key] = bytes(data)
        self._modified[key] = next(self._clock)
        self.writes.append(key)


class MemoryWriter:
    """An ObjectWriter; nothing is seen of it before its block has ended."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.num_bytes = 0
        self._digest = hashlib.sha256()

    def write(self, data: bytes | memoryview) -> None:
        self.pieces.append(bytes(data))
        self.num_bytes += len(data)
        self._digest.update(data)

    def sha256(self) -> str:
        return self._digest.hexdigest()


def _check(key: str) -> None:
    parts = key.split("/")
    if not all(parts) or ".." in parts or "." in parts or "\0" in key:
        raise StorageError(f"key {key!r}: not a relative key without '.' and '..'")
