"""The formats that a chunk can be written in; each takes the same batches, in the plan's order."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from imagenet_ops.adapters.object_store import ObjectStore, ObjectWriter
from imagenet_ops.domain.recordio import decode_image
from imagenet_ops.packer.items import Batch, Packed, PackItem


class ChunkFormat(Protocol):
    """Writes a chunk to one object or several; what `add` was given is there in full when the block ends."""

    writers: dict[str, ObjectWriter]
    """By the object's name."""

    def add(self, batch: Batch) -> None: ...


class OpenFormat(Protocol):
    """Opens a format's objects `{folder}{chunk name}.…`; they appear when the block ends without an error."""

    def __call__(self, store: ObjectStore, folder: str, name: str) -> AbstractContextManager[ChunkFormat]: ...


class PackedImage(NamedTuple):
    """One record of a batch with its image out of RecordIO's container."""

    item: PackItem
    image: bytes


def images_of(batch: Batch) -> Iterator[PackedImage]:
    """The packed images of a batch, in order."""
    for item, outcome in zip(batch.items, batch.outcomes, strict=True):
        if isinstance(outcome, Packed):
            encoded = io.BytesIO(batch.data[outcome.start : outcome.stop])
            yield PackedImage(item, decode_image(encoded.read, item.name).image)
