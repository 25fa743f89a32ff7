"""MXNet's RecordIO: `.rec` with its `.idx` and `.lst`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from imagenet_ops.adapters.object_store import ObjectStore, ObjectWriter
from imagenet_ops.domain.image_list import format_list_line
from imagenet_ops.packer.items import Batch, Packed


class RecordIOChunk:
    """A ChunkFormat; the workers' records go to the file as they are."""

    def __init__(self, name: str, rec: ObjectWriter, idx: ObjectWriter, lst: ObjectWriter) -> None:
        self.writers = {f"{name}.rec": rec, f"{name}.idx": idx, f"{name}.lst": lst}
        self._rec, self._idx, self._lst = rec, idx, lst

    def add(self, batch: Batch) -> None:
        start = self._rec.num_bytes
        packed = [
            (item, outcome)
            for item, outcome in zip(batch.items, batch.outcomes, strict=True)
            if isinstance(outcome, Packed)
        ]
        self._idx.write("".join(f"{item.record_id}\t{start + outcome.start}\n" for item, outcome in packed).encode())
        self._lst.write(
            "".join(format_list_line(item.record_id, item.labels, item.name) for item, _ in packed).encode()
        )
        self._rec.write(batch.data)


@contextmanager
def open_recordio(store: ObjectStore, folder: str, name: str) -> Iterator[RecordIOChunk]:
    """The index and the list appear before the records do."""
    with ExitStack() as stack:
        rec, idx, lst = (
            stack.enter_context(store.open_writer(f"{folder}{name}.{ending}")) for ending in ("rec", "idx", "lst")
        )
        yield RecordIOChunk(name, rec, idx, lst)
