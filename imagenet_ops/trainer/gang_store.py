"""Sums over the gang's workers through MXNet's key-value store.

A `dist_sync` server without an updater keeps the sum of all pushes, so a key can be used again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

# Far from gluon.Trainer's own keys, which count the parameters from 0.
_FIRST_KEY = 1_000_000


class GangStore:
    """This worker's place in the gang, and sums over all. Every worker must make the same calls in the same order."""

    def __init__(self, kind: str) -> None:
        self.kv = mx.kv.create(kind)
        self.rank: int = self.kv.rank
        self.num_workers: int = self.kv.num_workers
        self._key_of_size: dict[int, int] = {}

    def sum(self, values: Sequence[float] | NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """The element-wise sum of every worker's `values`; whole numbers are exact up to 2^24."""
        mine = mx.nd.array(values, dtype="float32")
        if mine.size not in self._key_of_size:
            key = _FIRST_KEY + len(self._key_of_size)
            self.kv.init(key, mx.nd.zeros_like(mine))
            self._key_of_size[mine.size] = key
        total = mx.nd.zeros_like(mine)
        self.kv.pushpull(self._key_of_size[mine.size], mine, out=total)
        result: NDArray[np.float32] = total.asnumpy()
        return result

    def of_first(self, value: float) -> float:
        """The first worker's `value`."""
        return float(self.sum([value if self.rank == 0 else 0.0])[0])
