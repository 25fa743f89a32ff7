"""WebDataset: a tar of `{key}.jpg` and `{key}.cls` for each record.

Source of the format: https://github.com/webdataset/webdataset (README, "The WebDataset Format"). The key is the record
id: a name with a dot in it would be cut there by the reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from imagenet_ops.adapters.object_store import ObjectStore, ObjectWriter
from imagenet_ops.adapters.tar_writer import TarWriter
from imagenet_ops.packer.formats import images_of
from imagenet_ops.packer.items import Batch


class WebDatasetChunk:
    """A ChunkFormat; several labels stand in `.cls` with blanks between them."""

    def __init__(self, name: str, writer: ObjectWriter) -> None:
        self.writers = {f"{name}.tar": writer}
        self.tar = TarWriter(writer)

    def add(self, batch: Batch) -> None:
        for item, image in images_of(batch):
            self.tar.add(f"{item.record_id:012d}.jpg", image)
            self.tar.add(f"{item.record_id:012d}.cls", " ".join(f"{label:g}" for label in item.labels).encode())


@contextmanager
def open_webdataset(store: ObjectStore, folder: str, name: str) -> Iterator[WebDatasetChunk]:
    with store.open_writer(f"{folder}{name}.tar") as writer:
        chunk = WebDatasetChunk(name, writer)
        yield chunk
        chunk.tar.finish()
