"""A packing worker in this process: what it makes of items that are not to be had, or too large."""

from __future__ import annotations

from multiprocessing.connection import Pipe

from imagenet_ops.adapters.stored_image import StoredImage
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.packer.items import PackItem, Skipped
from imagenet_ops.packer.messages import Filled
from imagenet_ops.packer.read_ahead import Piece
from imagenet_ops.packer.shared_memory import SharedMemory
from imagenet_ops.packer.worker import Slots, Worker

ITEM = PackItem(0, (0.0,), "n01/a.JPEG", "a")


class HugeCodec:
    def transcode(self, data: bytes, *, with_pixels: bool = False) -> StoredImage:
        return StoredImage(bytes(2**29 - 24), "kept", 1, 1, 0, None)


def pack(data: bytes | UnusableImage) -> Filled:
    here, there = Pipe()
    memory = SharedMemory()
    Worker(there, memory, Slots(memory, -1), HugeCodec()).pack(Piece(0, 0, [ITEM], [data], ends_block=True))
    filled: Filled = here.recv()
    return filled


def test_a_record_that_recordio_can_not_hold_is_skipped() -> None:
    assert pack(b"image").outcomes == [Skipped("a record of more than 536,870,911 bytes")]


def test_an_item_that_could_not_be_read_is_skipped_for_that_reason() -> None:
    assert pack(UnusableImage("file can't be read")) == Filled(0, [Skipped("file can't be read")], None, 0, None)
