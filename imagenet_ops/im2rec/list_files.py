"""The lists that a prefix takes, and what their lines say.

{record id}\\t{label}[\\t{label} …]\\t{path below the root}
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from imagenet_ops.errors import ConfigError
from imagenet_ops.records.texts import format_name

_OF_ONE_RUN = re.compile(r"(_\d+)?(_train|_val|_test)?\.lst")
_MAX_RECORD_ID = 2**64 - 1


class ListedImage(NamedTuple):
    """A list's line; there is at least one label."""

    record_id: int
    labels: tuple[float, ...]
    path: str


def find_lists(prefix: Path) -> list[Path]:
    """Every `.lst` whose path begins with the prefix, sorted: `train` takes `training2.lst` too.

    A prefix that is a folder takes all lists inside it. Raises ConfigError where the prefix's folder can't be read.
    """
    folder = prefix if prefix.is_dir() else prefix.parent
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise ConfigError(f"{format_name(folder)}: {error.strerror}") from error
    return [
        path for path in paths if str(path).startswith(str(prefix)) and path.name.endswith(".lst") and path.is_file()
    ]


def come_from_one_run(lists: Sequence[Path], prefix: Path) -> bool:
    """Whether one run of `--list` names its files like this; else one image may well be in two of them."""
    matches = [_OF_ONE_RUN.fullmatch(str(path).removeprefix(str(prefix))) for path in lists]
    kinds = {match and (match[1] is None, match[2] is None) for match in matches}
    return len(kinds) == 1 and None not in kinds


def read_list(path: Path, report: Callable[[int, str], None]) -> Iterator[ListedImage]:
    """The images of a list; `report` is told the number of each line that has none, and why. Empty lines are none."""
    with open(path, encoding=sys.getfilesystemencoding(), errors="surrogateescape") as file:
        for number, line in enumerate(file, 1):
            try:
                if stripped := line.strip():
                    yield _parse_line(stripped)
            except ValueError as reason:
                report(number, str(reason))


def count_lines(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))


def _parse_line(line: str) -> ListedImage:
    """Raises ValueError, with the reason, for a line that no record can be made of."""
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) < 3:
        raise ValueError("fewer than 3 fields between tabs")
    path = fields[-1]
    if "\0" in path:
        raise ValueError("a zero byte in its path")
    return ListedImage(_parse_record_id(fields[0]), _parse_labels(fields[1:-1]), path)


def _parse_record_id(text: str) -> int:
    try:
        record_id = int(text)
    except ValueError:
        raise ValueError("a record id that is no whole number") from None
    if not 0 <= record_id <= _MAX_RECORD_ID:
        raise ValueError("a record id that is negative or needs more than 64 bits")
    return record_id


def _parse_labels(texts: Sequence[str]) -> tuple[float, ...]:
    try:
        labels = tuple(map(float, texts))
        struct.pack(f"<{len(labels)}f", *labels)
    except ValueError:
        raise ValueError("a label that is no number") from None
    except OverflowError:
        raise ValueError("a label that needs more than 32 bits") from None
    return labels
