"""Where a worker finds the images: byte ranges of the store's objects, or files below a folder."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from imagenet_ops.adapters.object_store import ObjectStore, open_store
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.errors import ChecksumMismatch, StorageError
from imagenet_ops.packer.items import PackItem

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG)


@dataclass(frozen=True)
class StoreReader:
    """Items are byte ranges of objects of the store at `url`."""

    url: str

    @cached_property
    def _store(self) -> ObjectStore:
        return open_store(self.url)

    def read(self, item: PackItem) -> bytes:
        assert item.num_bytes is not None
        data = self._store.get_range(item.place, item.offset, item.num_bytes)
        if len(data) != item.num_bytes:
            raise ChecksumMismatch(
                f"{item.place}: {item.num_bytes:,} bytes expected at {item.offset:,} for {item.name}, "
                f"{len(data):,} found; the archive has changed since it was indexed"
            )
        return data


@dataclass(frozen=True)
class FolderReader:
    """Items are whole files below `root`; one that is not there is skipped like an unusable image."""

    root: Path

    def read(self, item: PackItem) -> bytes:
        try:
            with open(os.path.join(self.root, item.place), "rb", buffering=0) as file:  # noqa: PTH118
                return file.read()
        except OSError as error:
            if error.errno in _NOT_THERE:
                raise UnusableImage(f"file can't be read: {error.strerror}") from error
            raise StorageError(f"{item.place}: {error.strerror}") from error
