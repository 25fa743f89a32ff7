"""Files written aside and shown together: all of them under their names at the end, or none.

{folder}/.{name}.{random}.partial      a file under way; a killed command leaves it, and nothing reads it
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from imagenet_ops.errors import ConfigError, NoSpace, StorageError
from imagenet_ops.records.texts import format_name

_MAX_NAME_BYTES = 200  # of the 255 that file systems allow


class Outputs:
    """What a command writes. A dry run counts the bytes, and refuses what the real one would refuse."""

    def __init__(
        self, *, inputs: Sequence[Path] = (), force: bool = False, dry_run: bool = False, sync: bool = True
    ) -> None:
        """`inputs` are never written over; other files that exist only with `force`.

        Without `sync` a file that was shown may still be lost when the machine fails.
        """
        self._inputs, self._force, self._dry_run, self._sync = inputs, force, dry_run, sync
        self._files: dict[Path, OutputFile] = {}
        self._stale: list[Path] = []

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        try:
            if failure is None:
                self._show()
        finally:
            for file in self._files.values():
                file.drop()

    def claim(self, *paths: Path) -> None:
        """Raises ConfigError if one of the names can't be written to; makes nothing yet."""
        for path in paths:
            for given in self._inputs:
                if _is_same(path, given):
                    raise ConfigError(f"{format_name(path)}: is an input too; an output needs another name")
            if not (path.is_file() or path.is_symlink()) and os.path.lexists(path):
                raise ConfigError(f"{format_name(path)}: is no regular file; --force would not write over it either")
            if os.path.lexists(path) and not self._force:
                raise ConfigError(f"{format_name(path)}: exists already; --force writes over it")

    def create(self, path: Path) -> OutputFile:
        self.claim(path)
        if path in self._files:
            raise ConfigError(f"{format_name(path)}: two outputs would have this name")
        self._files[path] = OutputFile(path, None if self._dry_run else _create_aside(path), self._sync)
        return self._files[path]

    def remove(self, path: Path) -> None:
        """With the others' showing: what would no longer fit to them goes."""
        self.claim(path)
        self._stale.append(path)

    def _show(self) -> None:
        for file in self._files.values():
            file.finish()
        if self._dry_run:
            return
        for path in self._stale:
            path.unlink(missing_ok=True)
        for file in self._files.values():
            file.show()


class OutputFile:
    """A file under way; without an `aside` only its bytes are counted."""

    def __init__(self, path: Path, aside: BinaryIO | None, sync: bool) -> None:
        self.path, self._aside, self._sync = path, aside, sync
        self.num_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        if self._aside:
            with _write_errors(self.path):
                self._aside.write(data)
        self.num_bytes += len(data)

    def finish(self) -> None:
        """Nothing more comes: all bytes are written, still aside. A second call does nothing."""
        if self._aside and not self._aside.closed:
            with _write_errors(self.path):
                self._aside.flush()
                if self._sync:
                    os.fsync(self._aside.fileno())
                self._aside.close()

    def show(self) -> None:
        if self._aside:
            with _write_errors(self.path):
                Path(self._aside.name).replace(self.path)

    def drop(self) -> None:
        """What is still aside goes; what was shown stays."""
        if self._aside:
            Path(self._aside.name).unlink(missing_ok=True)
            with suppress(OSError):  # what a full disk left in the buffer; the fault itself was raised before
                self._aside.close()


def _create_aside(path: Path) -> BinaryIO:
    with _write_errors(path):
        name = os.fsdecode(os.fsencode(path.name)[:_MAX_NAME_BYTES])
        return open(path.parent / f".{name}.{secrets.token_hex(6)}.partial", "xb", buffering=2**20)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"{format_name(path)}: its folder does not exist") from None
    except PermissionError:
        raise ConfigError(f"{format_name(path)}: may not be written by this user") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(f"{format_name(path)}: the disk is full; nothing of it was kept") from error
        raise StorageError(f"{format_name(path)}: {error.strerror}") from error
