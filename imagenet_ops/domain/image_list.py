"""The `.lst` line of a record: index, label and path between tabs, as im2rec writes it."""

from __future__ import annotations

from collections.abc import Sequence

_ESCAPES = {code: f"%{code:02X}" for code in (*range(32), 127, ord("%"))}


def format_list_line(record_id: int, labels: Sequence[float], path: str) -> str:
    """One line with its newline.

    A line has no quoting, so what would break it is written as in a URL: control characters and `%` itself as `%09`.
    """
    return "".join([f"{record_id}\t", *(f"{label:.6f}\t" for label in labels), f"{path.translate(_ESCAPES)}\n"])


def parse_list_line(line: str) -> tuple[int, float, str]:
    """(record id, label, path) of a line; raises ValueError for a line of another shape."""
    record_id, label, path = line.rstrip("\n").split("\t")
    return int(record_id), float(label), path
