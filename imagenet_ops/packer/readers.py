"""Where a worker finds the images: byte ranges of the store's objects, or files below a folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from imagenet_ops.adapters.object_store import ObjectStore, open_store
from imagenet_ops.errors import ChecksumMismatch, DataError, StorageError
from imagenet_ops.packer.items import PackItem


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
    """Items are whole files below `root`."""

    root: Path

    def read(self, item: PackItem) -> bytes:
        try:
            return (self.root / item.place).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise DataError(f"{error.filename}: a file expected, {(error.strerror or '').lower()}") from error
        except OSError as error:
            raise StorageError(f"{error.filename}: {error.strerror}") from error
