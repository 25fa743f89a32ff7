"""What a worker and its starter say to each other over their connection.

starter → worker    Setup Block Block … None, and again
worker → starter    Filled … for each block in turn; Failed at the end of all
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from imagenet_ops.adapters.stored_image import Codec
from imagenet_ops.packer.items import Outcome, PackItem


class Reader(Protocol):
    """Where the images lie; goes to the worker as it is."""

    def read(self, item: PackItem) -> bytes:
        """The item's bytes. Raises UnusableImage to have it skipped, StorageError, naming it, to end the packing."""


class Setup(NamedTuple):
    """How the blocks up to the next None are to be packed."""

    reader: Reader
    codec: Codec


class Block(NamedTuple):
    """Items that follow each other in the plan. `first` is the place of the first one in its block of the plan."""

    number: int
    first: int
    items: list[PackItem]


class Filled(NamedTuple):
    """Outcomes of the next items of a block; their records are in a slot, or in `payload` where no slot holds them."""

    block: int
    outcomes: list[Outcome]
    slot: int | None
    num_bytes: int
    payload: bytes | None


class Failed(NamedTuple):
    """The worker can't go on."""

    error: Exception
