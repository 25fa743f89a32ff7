"""Labels as a command line names them: `1,2,5-9`."""

from __future__ import annotations

import re
from bisect import bisect_right

_RANGE = re.compile(r"(-?\d{1,15})(?:-(-?\d{1,15}))?", re.ASCII)


class LabelRanges:
    """Ranges of labels, both ends included."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for a text that is no list of whole numbers and ranges."""
        self._ranges = _merge(sorted(map(_parse_range, text.split(","))))
        self._starts = [start for start, _ in self._ranges]

    def __contains__(self, label: float) -> bool:
        position = bisect_right(self._starts, label) - 1
        return position >= 0 and self._ranges[position][0] <= label <= self._ranges[position][1]


def _parse_range(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no label and no range of labels such as 5-9")
    start, end = int(match[1]), int(match[2] or match[1])
    if end < start:
        raise ValueError(f"{text!r}: a range begins with its smaller label")
    return start, end


def _merge(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in ranges:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
