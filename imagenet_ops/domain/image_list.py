"""The `.lst` line of a record: index, label and path between tabs, as im2rec writes it."""

from __future__ import annotations


def format_list_line(record_id: int, label: int, synset: str, name: str) -> str:
    """One line with its newline.

    A line has no quoting, so what would break it is written as in a URL: control characters and `%` itself as `%09`.
    """
    path = "".join(
        f"%{ord(char):02X}" if char == "%" or ord(char) < 32 or ord(char) == 127 else char
        for char in f"{synset}/{name}"
    )
    return f"{record_id}\t{label:.6f}\t{path}\n"


def parse_list_line(line: str) -> tuple[int, float, str]:
    """(record id, label, path) of a line; raises ValueError for a line of another shape."""
    record_id, label, path = line.rstrip("\n").split("\t")
    return int(record_id), float(label), path
