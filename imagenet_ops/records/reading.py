"""Record files on disk, read in order: stops at the first damage, or tells it and reads on behind it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from imagenet_ops.domain.record_scan import FoundRecord, LostRange, scan_records
from imagenet_ops.errors import ConfigError, DataError, StorageError
from imagenet_ops.progress import Progress, Task
from imagenet_ops.records.texts import format_count, format_name

SOMETHING_LOST = 3


class RecordReader:
    """Reads one file after another; `salvage` is what to do at damage."""

    def __init__(self, *, salvage: bool, progress: Progress | None = None) -> None:
        """Without `progress` nothing tells how far it is."""
        self._salvage, self._progress = salvage, progress
        self._task: Task | None = None
        self._num_lost = self._lost_bytes = 0

    @contextmanager
    def watch(self, title: str, paths: Sequence[Path]) -> Iterator[None]:
        """Tells how many bytes of `paths` are read. Raises ConfigError if one of them is no regular file."""
        total = sum(map(_size_of_file, paths))
        if self._progress is None:
            yield
        else:
            with self._progress.task(title, total, "bytes") as self._task:
                yield

    def records(self, path: Path) -> Iterator[FoundRecord]:
        """Every whole record. Raises DataError at damage, or with salvage writes a line to stderr and goes on."""
        for found in self._scan(path):
            if isinstance(found, FoundRecord):
                yield found
            else:
                self._num_lost += 1
                self._lost_bytes += found.end - found.offset
                print(f"{format_name(path)}: {_describe(found)}", file=sys.stderr)

    def count(self, path: Path) -> int:
        """How many records `records` will give; tells nothing."""
        return sum(isinstance(found, FoundRecord) for found in self._scan(path))

    def finish(self) -> int:
        """The exit code; says on stderr how much was lost in all."""
        if not self._num_lost:
            return 0
        print(f"lost: {self._lost_bytes:,} bytes in {format_count(self._num_lost, 'range')}", file=sys.stderr)
        return SOMETHING_LOST

    def _scan(self, path: Path) -> Iterator[FoundRecord | LostRange]:
        with _open_file(path) as descriptor:
            num_bytes = os.fstat(descriptor).st_size
            for found in scan_records(lambda offset, size: _read_at(descriptor, offset, size, path), num_bytes):
                if isinstance(found, LostRange) and not self._salvage:
                    raise DataError(f"{format_name(path)}: {found.reason}; --salvage reads on behind the damage")
                yield found
                if self._task:
                    self._task.advance(found.end - found.offset)


def _describe(lost: LostRange) -> str:
    return f"{lost.reason}; lost bytes {lost.offset:,} to {lost.end:,} ({lost.end - lost.offset:,} bytes)"


def _size_of_file(path: Path) -> int:
    with _read_errors(path):
        status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise ConfigError(f"{format_name(path)}: a record file expected, found {kind}")
    return status.st_size


@contextmanager
def _open_file(path: Path) -> Iterator[int]:
    _size_of_file(path)  # opening a named pipe would wait for its writer
    with _read_errors(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_at(descriptor: int, offset: int, num_bytes: int, path: Path) -> bytes:
    with _read_errors(path):
        data = os.pread(descriptor, num_bytes, offset)
        while 0 < len(data) < num_bytes and (more := os.pread(descriptor, num_bytes - len(data), offset + len(data))):
            data += more
    if len(data) < num_bytes:
        raise DataError(f"{format_name(path)}: byte {offset + len(data):,}: has become shorter while it was read")
    return data


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"{format_name(path)}: no such file") from None
    except PermissionError:
        raise ConfigError(f"{format_name(path)}: may not be read by this user") from None
    except OSError as error:
        raise StorageError(f"{format_name(path)}: {error.strerror}") from error
