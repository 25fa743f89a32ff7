"""What goes to a packing worker and what comes back: plain values, quick to pickle.

PackItem ──► worker ──► Packed | Skipped, with the encoded records in shared memory
"""

from __future__ import annotations

from typing import NamedTuple


class PackItem(NamedTuple):
    """One image to be packed: where it lies and what its record says of it.

    `place` is a key of the store, or a path below the folder; `num_bytes` is None for a whole file. `refused` is the
    reason why it is not to be tried at all.
    """

    record_id: int
    labels: tuple[float, ...]
    name: str
    place: str
    offset: int = 0
    num_bytes: int | None = None
    measured: bool = False
    refused: str | None = None


class Packed(NamedTuple):
    """An item's record; `start` and `stop` are its place in the batch's data. Moments are as in PixelMoments."""

    start: int
    stop: int
    treatment: str
    width: int
    height: int
    num_source_bytes: int
    num_image_bytes: int
    num_dropped_bytes: int
    moments: tuple[int, list[int], list[int]] | None


class Skipped(NamedTuple):
    """The reason why an item has no record."""

    reason: str


Outcome = Packed | Skipped


class Batch(NamedTuple):
    """Items that follow each other in the plan, what became of each, and the records of the packed ones end to end.

    `data` is valid until the next batch is asked for.
    """

    items: list[PackItem]
    outcomes: list[Outcome]
    data: memoryview
