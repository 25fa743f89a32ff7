"""A packing worker: `python -m imagenet_ops.packer.worker CONNECTION MEMORY FREED STARTER_PID` (three descriptors).

It takes a setup and blocks of items from the connection, again and again, reads ahead of the codec, and fills slots of
the shared memory in turn.
A byte in the pipe FREED says that the oldest filled slot is free again.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection

from imagenet_ops.adapters.byte_search import holds_aligned_magic
from imagenet_ops.adapters.pixel_moments import measure
from imagenet_ops.adapters.starter_tie import end_with_starter
from imagenet_ops.adapters.stored_image import Codec
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.domain.recordio import MAX_RECORD_BYTES, ImageRecord, encode_image
from imagenet_ops.errors import DataError
from imagenet_ops.packer.items import Outcome, Packed, PackItem, Skipped
from imagenet_ops.packer.messages import Failed, Filled, Setup
from imagenet_ops.packer.read_ahead import Piece, ReadAhead
from imagenet_ops.packer.shared_memory import NUM_SLOTS, SLOT_BYTES, Activity, SharedMemory


def main() -> None:
    connection_descriptor, memory_descriptor, freed, starter_pid = map(int, sys.argv[1:])
    end_with_starter(starter_pid)
    connection = Connection(connection_descriptor)
    memory = SharedMemory(memory_descriptor)
    slots = Slots(memory, freed)
    try:
        while True:
            setup: Setup = connection.recv()
            _pack_all(connection, memory, slots, setup)
    except EOFError:
        pass  # the starter has ended
    except Exception as error:
        connection.send(Failed(error))


def _pack_all(connection: Connection, memory: SharedMemory, slots: Slots, setup: Setup) -> None:
    worker = Worker(connection, memory, slots, setup.codec)
    memory.beat(Activity.READING)
    for piece in ReadAhead(connection, setup.reader):
        worker.pack(piece)
        memory.beat(Activity.READING, piece.block, piece.first + len(piece.items))


class Worker:
    """Packs piece after piece; what is packed goes to the starter when a slot is full or a block ends."""

    def __init__(self, connection: Connection, memory: SharedMemory, slots: Slots, codec: Codec) -> None:
        self._connection, self._memory, self._slots, self._codec = connection, memory, slots, codec
        self._outcomes: list[Outcome] = []

    def pack(self, piece: Piece) -> None:
        for index, (item, data) in enumerate(zip(piece.items, piece.images, strict=True)):
            self._memory.beat(Activity.TRANSCODING, piece.block, piece.first + index)
            outcome, encoded = self._pack_item(item, data)
            self._memory.beat(Activity.WAITING)
            self._add(piece.block, outcome, encoded)
        if piece.ends_block and self._outcomes:
            self._send(piece.block)

    def _pack_item(self, item: PackItem, data: bytes | UnusableImage) -> tuple[Outcome, list[bytes]]:
        if isinstance(data, UnusableImage):
            return Skipped(str(data)), []
        try:
            stored = self._codec.transcode(data, with_pixels=item.measured)
            record = ImageRecord(item.record_id, item.labels, stored.image)
            encoded = encode_image(record, holds_magic=holds_aligned_magic(stored.image))
        except UnusableImage as reason:
            return Skipped(str(reason)), []
        except DataError:
            return Skipped(f"a record of more than {MAX_RECORD_BYTES:,} bytes"), []
        packed = Packed(
            start=0,
            stop=sum(map(len, encoded)),
            treatment=stored.treatment,
            width=stored.width,
            height=stored.height,
            num_source_bytes=len(data),
            num_image_bytes=len(stored.image),
            num_dropped_bytes=stored.num_dropped_bytes,
            moments=measure(stored.pixels) if item.measured and stored.pixels is not None else None,
        )
        return packed, encoded

    def _add(self, block: int, outcome: Outcome, encoded: list[bytes]) -> None:
        if isinstance(outcome, Packed):
            if self._outcomes and outcome.stop > self._slots.room:
                self._send(block)
            if outcome.stop > SLOT_BYTES:
                self._connection.send(Filled(block, [outcome], None, outcome.stop, b"".join(encoded)))
                return
            start = self._slots.write(encoded)
            outcome = outcome._replace(start=start, stop=start + outcome.stop)
        self._outcomes.append(outcome)

    def _send(self, block: int) -> None:
        slot, num_bytes = self._slots.hand_over()
        self._connection.send(Filled(block, self._outcomes, slot, num_bytes, None))
        self._outcomes = []


class Slots:
    """The slots of the shared memory, filled in turn; the starter frees them in the same order."""

    def __init__(self, memory: SharedMemory, freed: int) -> None:
        self._memory, self._freed = memory, freed
        self._num_free = NUM_SLOTS
        self._current: int | None = None
        self._next = 0
        self._num_bytes = 0

    @property
    def room(self) -> int:
        return SLOT_BYTES - self._num_bytes

    def write(self, pieces: list[bytes]) -> int:
        """Appends the pieces to the current slot, where there must be room; returns where they start."""
        if self._current is None:
            self._take()
        assert self._current is not None
        slot, start = self._memory.slot(self._current), self._num_bytes
        for piece in pieces:
            slot[self._num_bytes : self._num_bytes + len(piece)] = piece
            self._num_bytes += len(piece)
        return start

    def hand_over(self) -> tuple[int | None, int]:
        """The current slot and how much is in it; None where nothing was written since the last one."""
        slot, num_bytes = self._current, self._num_bytes
        self._current, self._num_bytes = None, 0
        return slot, num_bytes

    def _take(self) -> None:
        if not self._num_free:
            if not os.read(self._freed, 1):
                sys.exit(0)  # the starter is gone
            self._num_free += 1
        self._num_free -= 1
        self._current, self._next = self._next, (self._next + 1) % NUM_SLOTS


if __name__ == "__main__":
    main()
