"""The object store in a local folder: write aside, fsync, rename.

    {root}/{key}                           an object
    {root}/…/.{name}.{random}.partial      a write under way; its writer holds a lock on it

A writer that was killed leaves its partial file without a lock; the next writer of the same object removes it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from imagenet_ops.adapters.object_store import ObjectInfo, ObjectWriter
from imagenet_ops.errors import NoSpace, ObjectNotFound, StorageError

_PARTIAL = ".partial"
_HASHED_ALONGSIDE_BYTES = 2**18
_FLUSHED_ALONGSIDE_BYTES = 2**27
_background = ThreadPoolExecutor(8, "file_store")


class FileStore:
    """An ObjectStore in the folder `root`, which is made at the first write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = root.as_uri()
        self._root_name = str(root)

    def get(self, key: str) -> bytes:
        with _storage_errors(key):
            return self._path(key).read_bytes()

    def get_range(self, key: str, offset: int, num_bytes: int) -> bytes:
        with _storage_errors(key):
            # A string and no Path: this runs once an image, and building a Path costs more than the read.
            descriptor = os.open(self._file_name(key), os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_fully(descriptor, offset, num_bytes)
            finally:
                os.close(descriptor)

    def head(self, key: str) -> ObjectInfo | None:
        with _storage_errors(key):
            try:
                status = self._path(key).stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
        return ObjectInfo(key, status.st_size, status.st_mtime) if stat.S_ISREG(status.st_mode) else None

    def put(self, key: str, data: bytes) -> None:
        with self.open_writer(key) as writer:
            writer.write(data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        path = self._path(key)
        with _partial_file(key, path) as file, _storage_errors(key):
            file.write(data)
            _flush_to_disk(file)
            try:
                os.link(file.name, path)
            except FileExistsError:
                return False
            _sync_folder(path.parent)
            return True

    @contextmanager
    def open_writer(self, key: str) -> Iterator[ObjectWriter]:
        path = self._path(key)
        with _partial_file(key, path) as file:
            writer = _FileWriter(key, file)
            yield writer
            writer.finish()
            with _storage_errors(key):
                Path(file.name).rename(path)
                _sync_folder(path.parent)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        folder = self._path(prefix) if prefix else self.root
        paths = (path for path in folder.rglob("*") if path.is_file() and not _is_partial(path))
        for key in sorted(path.relative_to(self.root).as_posix() for path in paths):
            if info := self.head(key):
                yield info

    def delete(self, key: str) -> None:
        with suppress(ObjectNotFound), _storage_errors(key):
            self._path(key).unlink()

    def local_path(self, key: str) -> Path | None:
        return self._path(key)

    def _path(self, key: str) -> Path:
        return Path(self._file_name(key))

    def _file_name(self, key: str) -> str:
        parts = key.split("/")
        if not all(parts) or ".." in parts or "." in parts or "\0" in key:
            raise StorageError(f"key {key!r}: not a relative key without '.' and '..'")
        return f"{self._root_name}/{key}"


class _FileWriter:
    def __init__(self, key: str, file: BinaryIO) -> None:
        self._key = key
        self._file = file
        self._digest = hashlib.sha256()
        self._flushing: Future[None] | None = None
        self._num_flushed_bytes = 0
        self.num_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Large pieces are hashed while they are written, for either takes about as long."""
        hashed = _background.submit(self._digest.update, data) if len(data) >= _HASHED_ALONGSIDE_BYTES else None
        try:
            with _storage_errors(self._key):
                self._file.write(data)
        finally:
            if hashed:
                hashed.result()
        if not hashed:
            self._digest.update(data)
        self.num_bytes += len(data)
        self._flush_ahead()

    def finish(self) -> None:
        """All bytes are on the disk."""
        with _storage_errors(self._key):
            if self._flushing:
                self._flushing.result()
            _flush_to_disk(self._file)

    def _flush_ahead(self) -> None:
        """Starts to bring to the disk what is written, so that little is left to wait for at the end."""
        if self.num_bytes - self._num_flushed_bytes < _FLUSHED_ALONGSIDE_BYTES:
            return
        if self._flushing is None or self._flushing.done():
            self._flushing = _background.submit(os.fdatasync, self._file.fileno())
            self._num_flushed_bytes = self.num_bytes

    def sha256(self) -> str:
        return self._digest.hexdigest()


@contextmanager
def _partial_file(key: str, path: Path) -> Iterator[BinaryIO]:
    with _storage_errors(key):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        file = _create_locked(path)
    try:
        yield file
    finally:
        Path(file.name).unlink(missing_ok=True)
        with suppress(OSError):  # what a full disk left in the buffer; the fault itself was raised before
            file.close()


def _create_locked(path: Path) -> BinaryIO:
    while True:
        partial = path.parent / f".{path.name}.{secrets.token_hex(6)}{_PARTIAL}"
        file = open(partial, "xb", buffering=2**20)  # noqa: SIM115
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # taken for abandoned by another writer, just before the lock was there


@contextmanager
def _storage_errors(key: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise ObjectNotFound(f"{key}: no such object ({error.filename})") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(f"{key}: the store's disk is full") from error
        raise StorageError(f"{key}: {error.strerror or error} ({error.filename})") from error


def _read_fully(descriptor: int, offset: int, num_bytes: int) -> bytes:
    pieces = []
    while num_bytes > 0 and (piece := os.pread(descriptor, num_bytes, offset)):
        pieces.append(piece)
        offset += len(piece)
        num_bytes -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _flush_to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_partial(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(_PARTIAL)


def _remove_abandoned(path: Path) -> None:
    for partial in path.parent.glob(f".{_escaped(path.name)}.*{_PARTIAL}"):
        with suppress(OSError), open(partial, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.unlink()


def _escaped(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
