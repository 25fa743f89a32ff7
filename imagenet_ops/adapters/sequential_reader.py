"""An object read from front to back in large ranges, hashed on the way."""

from __future__ import annotations

import hashlib

from imagenet_ops.adapters.object_store import ObjectStore

_BLOCK_BYTES = 8 * 2**20


class SequentialReader:
    """`read(n)` gives the next n bytes, fewer only at the end; memory stays at one block and one read."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store, self._key = store, key
        self._position = 0
        self._buffer = memoryview(b"")
        self._digest = hashlib.sha256()

    def read(self, num_bytes: int) -> bytes:
        while len(self._buffer) < num_bytes:
            block = self._store.get_range(self._key, self._position, max(_BLOCK_BYTES, num_bytes))
            if not block:
                break
            self._digest.update(block)
            self._position += len(block)
            self._buffer = memoryview(bytes(self._buffer) + block)
        piece, self._buffer = bytes(self._buffer[:num_bytes]), self._buffer[num_bytes:]
        return piece

    def sha256(self) -> str:
        """Hex digest of all that was fetched: of the whole object once `read` has given too few bytes."""
        return self._digest.hexdigest()
