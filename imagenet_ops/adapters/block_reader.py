"""Small reads that lie close together, as a tar's header and the image behind it, with one request for both."""

from __future__ import annotations

from imagenet_ops.adapters.object_store import ObjectStore

_BLOCK_BYTES = 8 * 2**10


class BlockReader:
    """`read(offset, num_bytes)` gives fewer bytes only at the object's end; the last block stays in memory."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store, self._key = store, key
        self._block, self._offset = b"", 0

    def read(self, offset: int, num_bytes: int) -> bytes:
        start = offset - self._offset
        if start < 0 or start + num_bytes > len(self._block):
            self._block = self._store.get_range(self._key, offset, max(num_bytes, _BLOCK_BYTES))
            self._offset, start = offset, 0
        return self._block[start : start + num_bytes]
