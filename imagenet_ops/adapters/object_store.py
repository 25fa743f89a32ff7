"""The object store: where every stage's output lies.

Keys are relative, `/`-separated and never contain `..`. An object appears whole or not at all: a reader sees the old
content or the new one, and a writer that dies leaves nothing that `list` or `get` would show.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from imagenet_ops.errors import ConfigError


@dataclass(frozen=True)
class ObjectInfo:
    """What the store knows of an object; `modified_seconds` is since the epoch."""

    key: str
    num_bytes: int
    modified_seconds: float


class ObjectWriter(Protocol):
    """Takes an object's bytes in order, and counts and hashes them on the way."""

    num_bytes: int

    def write(self, data: bytes | memoryview) -> None: ...

    def sha256(self) -> str:
        """Hex digest of what was written so far."""


class ObjectStore(Protocol):
    """Raises ObjectNotFound for a missing object, NoSpace for a full disk, else StorageError."""

    url: str

    def get(self, key: str) -> bytes: ...

    def get_range(self, key: str, offset: int, num_bytes: int) -> bytes:
        """Up to `num_bytes` from `offset`; shorter only where the object ends."""

    def head(self, key: str) -> ObjectInfo | None:
        """None where no object lies under the key."""

    def put(self, key: str, data: bytes) -> None:
        """Replaces an object that is there."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """False, and nothing written, where the object is there already; of two at once, one gets True."""

    def open_writer(self, key: str) -> AbstractContextManager[ObjectWriter]:
        """The object appears when the block ends, and not at all when it raises."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Every object whose key starts with the folder `prefix`, sorted by key."""

    def delete(self, key: str) -> None:
        """A missing object is no error."""

    def local_path(self, key: str) -> Path | None:
        """The object's file where the store is a folder of this machine, to be read only."""


def open_store(url: str) -> ObjectStore:
    """The store at `url`: `file:///folder`. Raises ConfigError for another scheme, and for `#` or `?` not quoted."""
    parts = urlsplit(url)
    if parts.query or parts.fragment or url.endswith(("?", "#")):
        raise ConfigError(f"store {url!r}: `?` and `#` in a folder's name are written %3F and %23")
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
        from imagenet_ops.adapters.file_store import FileStore

        return FileStore(Path(unquote(parts.path)))
    raise ConfigError(f"store {url!r}: expected file:///an/absolute/folder")
