"""Memory that a worker and the process that started it both see: a heartbeat and a few slots for encoded records.

0           activity u64 · block u64 · position u64 · since u64 (CLOCK_MONOTONIC, in nanoseconds)
4096        slot 0
+ 4 MiB     slot 1 …
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from enum import IntEnum
from typing import NamedTuple

SLOT_BYTES = 4 * 2**20
NUM_SLOTS = 3
_HEAD_BYTES = 4096
_HEARTBEAT = struct.Struct("<QQQQ")


class Activity(IntEnum):
    """What a worker is busy with."""

    WAITING = 0
    READING = 1
    TRANSCODING = 2


class Heartbeat(NamedTuple):
    """What a worker does, for which item of which block, since when."""

    activity: Activity
    block: int
    position: int
    since_ns: int

    @property
    def seconds(self) -> float:
        return (time.monotonic_ns() - self.since_ns) / 1e9


class SharedMemory:
    """Made by the starter without a descriptor, opened by the worker with the one it was given."""

    def __init__(self, descriptor: int | None = None) -> None:
        num_bytes = _HEAD_BYTES + NUM_SLOTS * SLOT_BYTES
        if descriptor is None:
            descriptor = os.memfd_create("packer")
            os.ftruncate(descriptor, num_bytes)
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, num_bytes)
        self._view = memoryview(self._memory)

    def slot(self, number: int) -> memoryview:
        start = _HEAD_BYTES + number * SLOT_BYTES
        return self._view[start : start + SLOT_BYTES]

    def beat(self, activity: Activity, block: int = 0, position: int = 0) -> None:
        _HEARTBEAT.pack_into(self._memory, 0, activity, block, position, time.monotonic_ns())

    def heartbeat(self) -> Heartbeat:
        activity, *rest = _HEARTBEAT.unpack_from(self._memory, 0)
        return Heartbeat(Activity(activity), *rest)
