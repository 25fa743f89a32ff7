"""What a list names and no record holds, for a person to look at.

{folder}/{stem of the list}/
    reasons.tsv                           record id, path, reason, name of the copy; a line of the list that can't be
                                          read has its number as its path
    {record id}_{end of its path}.unusable    a copy; its suffix keeps a later `--list` from taking it for an image
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TextIO

MAX_COPIED_BYTES = 2**28
_SUFFIX = ".unusable"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Quarantine:
    """Of one list. It makes its folder with the first entry, and takes those of an earlier run away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reasons = Counter[str]()
        self._num_copied_bytes = 0
        self._file: TextIO | None = None

    def __enter__(self) -> Quarantine:
        for path in (self._path, *self.folder.glob(f"*{_SUFFIX}")):
            path.unlink(missing_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def add_line(self, number: int, reason: str) -> None:
        """A line of the list that can't be read."""
        self._tell("", f"line {number}", reason, "")

    def add_image(self, record_id: int, path: str, reason: str, source: Path) -> None:
        """Copies the file `source` where it can be read. Beyond MAX_COPIED_BYTES images are only listed."""
        data = _read(source)
        name = ""
        if data is not None and self._num_copied_bytes + len(data) <= MAX_COPIED_BYTES:
            name = f"{record_id}_{_UNSAFE.sub('_', path)[-80:]}{_SUFFIX}"
            self._num_copied_bytes += len(data)
        self._tell(str(record_id), path, reason, name)
        if data is not None and name:
            (self.folder / name).write_bytes(data)

    def _tell(self, record_id: str, path: str, reason: str, name: str) -> None:
        self.reasons[reason] += 1
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "w", encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        self._file.write(f"{record_id}\t{path}\t{reason}\t{name}\n")

    @property
    def _path(self) -> Path:
        return self.folder / "reasons.tsv"


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None
