"""Which record goes into which chunk."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple


class ChunkRange(NamedTuple):
    """Records `start` to `stop` (exclusive) of a split's shuffled order."""

    name: str
    start: int
    stop: int


def plan_chunks(split: str, num_records: int, num_chunks: int) -> list[ChunkRange]:
    """`num_chunks` chunks that differ by one record at most, the longer ones first; fewer where records are fewer."""
    if not num_records:
        return []
    num_chunks = min(num_chunks, num_records)
    bounds = [
        index * (num_records // num_chunks) + min(index, num_records % num_chunks) for index in range(num_chunks + 1)
    ]
    return [ChunkRange(f"{split}_{index:05d}", start, stop) for index, (start, stop) in enumerate(pairwise(bounds))]


def choose_num_chunks(num_source_bytes: int, target_chunk_bytes: int) -> int:
    """Chunks of about `target_chunk_bytes` of source images, at least one."""
    return max(1, round(num_source_bytes / target_chunk_bytes))
