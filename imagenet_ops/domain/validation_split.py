"""Which images of a class validate."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from imagenet_ops.domain.keyed_hash import keyed_hash


def choose_validation(names: Iterable[str], synset: str, count: int, seed: int) -> list[str]:
    """The `count` names with the smallest hash, sorted by name.

    The order of `names` does not matter, and an added image can push out at most one other.
    """
    chosen = heapq.nsmallest(count, names, key=lambda name: (keyed_hash(seed, "validation", synset, name), name))
    return sorted(chosen)
