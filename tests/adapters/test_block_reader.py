from __future__ import annotations

import random

from imagenet_ops.adapters.block_reader import BlockReader
from tests.fakes import MemoryStore


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.num_reads = 0

    def get_range(self, key: str, offset: int, num_bytes: int) -> bytes:
        self.num_reads += 1
        return super().get_range(key, offset, num_bytes)


def test_every_read_gives_the_objects_bytes() -> None:
    chance = random.Random(1)
    data = chance.randbytes(50_000)
    store = MemoryStore()
    store.put("a", data)
    reader = BlockReader(store, "a")
    for _ in range(2_000):
        offset, num_bytes = chance.randrange(52_000), chance.choice([0, 1, 9, 512, 20_000])
        assert reader.read(offset, num_bytes) == data[offset : offset + num_bytes]


def test_what_follows_a_header_is_fetched_with_it() -> None:
    store = CountingStore()
    store.put("a", bytes(50_000))
    reader = BlockReader(store, "a")
    for member in (0, 10_240, 20_480):
        reader.read(member, 512)
        for offset in range(512, 4_000, 100):
            reader.read(member + offset, 9)
    assert store.num_reads == 3
