"""Reads a worker's images ahead of the codec, on a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.connection import Connection
from queue import Queue
from threading import Thread
from typing import NamedTuple

from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.packer.items import PackItem
from imagenet_ops.packer.messages import Block, Reader

_PIECE_BYTES = 2**20
_PIECES_AHEAD = 2


class Piece(NamedTuple):
    """Some of a block's items with their bytes, or why there are none: about 1 MiB, or one image that is larger."""

    block: int
    first: int
    items: list[PackItem]
    images: list[bytes | UnusableImage]
    ends_block: bool


class ReadAhead:
    """The pieces of all blocks that come over the connection, in order; ends when the starter says so or is gone."""

    def __init__(self, connection: Connection, reader: Reader) -> None:
        self._connection, self._reader = connection, reader
        self._pieces: Queue[Piece | Exception | None] = Queue(_PIECES_AHEAD)
        Thread(target=self._read_blocks, daemon=True).start()

    def __iter__(self) -> Iterator[Piece]:
        """Raises what reading raised."""
        while (piece := self._pieces.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def _read_blocks(self) -> None:
        try:
            while (block := self._connection.recv()) is not None:
                self._read_block(block)
            self._pieces.put(None)
        except EOFError:
            self._pieces.put(None)
        except Exception as error:
            self._pieces.put(error)

    def _read_block(self, block: Block) -> None:
        start, num_bytes, images = 0, 0, list[bytes | UnusableImage]()
        for stop, item in enumerate(block.items, start=1):
            image = self._read(item)
            images.append(image)
            num_bytes += len(image) if isinstance(image, bytes) else 0
            if num_bytes >= _PIECE_BYTES or stop == len(block.items):
                ends = stop == len(block.items)
                self._pieces.put(Piece(block.number, block.first + start, block.items[start:stop], images, ends))
                start, num_bytes, images = stop, 0, []

    def _read(self, item: PackItem) -> bytes | UnusableImage:
        if item.refused:
            return UnusableImage(item.refused)
        try:
            return self._reader.read(item)
        except UnusableImage as reason:
            return reason
