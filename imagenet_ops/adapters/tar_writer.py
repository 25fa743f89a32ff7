"""A tar written member by member into an object; the same members give the same bytes."""

from __future__ import annotations

import tarfile

from imagenet_ops.adapters.object_store import ObjectWriter


class TarWriter:
    """USTAR: names of ASCII, at most 100 characters. `finish` writes the end that a reader looks for."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    @property
    def num_bytes(self) -> int:
        return self._writer.num_bytes

    def add(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(name)  # of time 0 and nobody
        info.size = len(data)
        self._writer.write(info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE))

    def finish(self) -> None:
        self._writer.write(bytes(2 * tarfile.BLOCKSIZE))
