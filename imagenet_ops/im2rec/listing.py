"""The lists that `--list` writes.

{prefix}.lst                                          all images; with several chunks {prefix}_0.lst, {prefix}_1.lst …
{prefix}_test.lst, {prefix}_val.lst, {prefix}_train.lst    with a --train-ratio, of each chunk where there are several
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_ops.im2rec.folder_walk import FoundImage
from imagenet_ops.im2rec.options import Im2recOptions
from imagenet_ops.records.output import Outputs

_SEED = 100
_LINES_A_WRITE = 10_000
_BREAKS_A_LINE = frozenset("\t\n\r")


@dataclass(frozen=True)
class PlannedList:
    """A list's file and its images, in their order."""

    path: Path
    images: Sequence[FoundImage]


def plan_lists(images: Sequence[FoundImage], options: Im2recOptions) -> list[PlannedList]:
    """Shuffles, cuts into chunks of one size, of which the last may be short, and splits each by the ratios.

    Shares are rounded down, and are those of a full chunk where the last is short too. With ratios that add up to 1,
    what the rounding leaves is in no list.
    """
    order = list(images)
    if options.shuffle:
        random.Random(_SEED).shuffle(order)
    chunk_size = -(-len(order) // options.chunks)
    lists = list[PlannedList]()
    for number in range(options.chunks):
        prefix = f"{options.prefix}_{number}" if options.chunks > 1 else options.prefix
        chunk = order[number * chunk_size : (number + 1) * chunk_size]
        parts = _split(chunk, chunk_size, options.train_ratio, options.test_ratio)
        lists += [PlannedList(Path(f"{prefix}{suffix}.lst"), part) for suffix, part in parts]
    return lists


def _split(
    chunk: Sequence[FoundImage], chunk_size: int, train_ratio: float, test_ratio: float
) -> Iterator[tuple[str, Sequence[FoundImage]]]:
    if train_ratio == 1:
        yield "", chunk
        return
    end_of_test = int(chunk_size * test_ratio)
    end_of_train = end_of_test + int(chunk_size * train_ratio)
    if test_ratio:
        yield "_test", chunk[:end_of_test]
    if train_ratio + test_ratio < 1:
        yield "_val", chunk[end_of_train:]
    yield "_train", chunk[end_of_test:end_of_train]


def write_lists(lists: Sequence[PlannedList], outputs: Outputs) -> None:
    """A list that is a link is written where it leads to."""
    for planned in lists:
        file = outputs.create(planned.path.resolve())
        for start in range(0, len(planned.images), _LINES_A_WRITE):
            lines = map(_format_line, planned.images[start : start + _LINES_A_WRITE])
            file.write(os.fsencode("".join(lines)))
        file.finish()


def _format_line(image: FoundImage) -> str:
    return f"{image.record_id}\t{image.label:.6f}\t{image.path}\n"


def find_unlistable(images: Collection[FoundImage]) -> list[str]:
    """Paths that a list can't hold: no reader finds these files again."""
    return [
        image.path for image in images if image.path != image.path.strip() or not _BREAKS_A_LINE.isdisjoint(image.path)
    ]


def find_undecodable(images: Collection[FoundImage]) -> list[str]:
    """Paths that are no UTF-8: a list keeps their bytes, and many programs can't read such a list."""
    return [
        image.path
        for image in images
        if not image.path.isascii() and any("\ud800" <= c <= "\udfff" for c in image.path)
    ]
