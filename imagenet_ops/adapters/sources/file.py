"""An archive on a mounted disk, or a folder of class folders there."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path

from imagenet_ops.adapters.sources import SourceInfo
from imagenet_ops.errors import DataError, SourceUnavailable

_BLOCK_BYTES = 2**20


class FileSource:
    """One file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def inspect(self) -> SourceInfo:
        with _source_errors():
            status = self._path.stat()
        return SourceInfo(f"{status.st_size}:{status.st_mtime_ns}", status.st_size)

    @contextmanager
    def open(self) -> Iterator[Iterator[bytes]]:
        with _source_errors():
            file = open(self._path, "rb", buffering=0)  # noqa: SIM115
        with file:
            yield _blocks(file)


class FolderSource:
    """A folder of class folders, as a tar of them; sorted and without times, so the same files give the same bytes.

    One object in the store in place of millions; its members are byte ranges like any other archive's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def inspect(self) -> SourceInfo:
        digest = hashlib.sha256()
        with _source_errors():
            for name, path in self._files():
                status = path.stat()
                digest.update(os.fsencode(f"{name}\0{status.st_size}:{status.st_mtime_ns}\n"))
        return SourceInfo(digest.hexdigest(), None)

    @contextmanager
    def open(self) -> Iterator[Iterator[bytes]]:
        yield self._tar()

    def _tar(self) -> Iterator[bytes]:
        for name, path in self._files():
            with _source_errors(), open(path, "rb", buffering=0) as file:
                num_bytes = os.fstat(file.fileno()).st_size
                yield _tar_header(name, num_bytes)
                left = num_bytes
                while left and (block := file.read(min(_BLOCK_BYTES, left))):
                    left -= len(block)
                    yield block
                if left:
                    raise SourceUnavailable(f"{path}: became {left:,} bytes shorter while it was read")
            yield bytes(-num_bytes % tarfile.BLOCKSIZE)
        yield bytes(2 * tarfile.BLOCKSIZE)

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Name within the folder and path of every file, sorted by name; links are followed."""
        return iter(sorted((path.relative_to(self._path).as_posix(), path) for path in _walk(self._path, ())))


@contextmanager
def _source_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceUnavailable(f"{error.filename}: can't be read: {error.strerror}") from error


def _blocks(file: RawIOBase) -> Iterator[bytes]:
    with _source_errors():
        while block := file.read(_BLOCK_BYTES):
            yield block


def _walk(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    real = folder.resolve()
    if real in above:
        raise DataError(f"{folder}: a link to a folder above it")
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, (*above, real))
        elif entry.is_file():
            yield entry
        else:
            raise DataError(f"{entry}: neither a file nor a folder, or a link to nothing")


def _tar_header(name: str, num_bytes: int) -> bytes:
    header = tarfile.TarInfo(name)
    header.size = num_bytes
    return header.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
