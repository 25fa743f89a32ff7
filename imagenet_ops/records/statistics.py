"""records stats: what the records of some files have in them, counted in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imagenet_ops.domain.recordio import unpack_image
from imagenet_ops.records.id_set import IdSet
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.texts import find_header, format_label

_MAX_LABELS = 100_000  # more are no classes but measures, such as the corners of boxes
_SHOWN_LABELS = 30
_SHOWN_IDS = 10


@dataclass
class Spread:
    """Least, mean and greatest of numbers."""

    count: int = 0
    total: int = 0
    least: int = 0
    greatest: int = 0

    def add(self, number: int) -> None:
        self.least = number if not self.count else min(self.least, number)
        self.greatest = max(self.greatest, number)
        self.count += 1
        self.total += number

    def as_dict(self) -> dict[str, float] | None:
        """None for no numbers at all."""
        if not self.count:
            return None
        return {"least": self.least, "mean": round(self.total / self.count, 1), "greatest": self.greatest}


@dataclass
class Statistics:
    """Of all records of all files together; a label counts once a record."""

    num_records: int = 0
    num_multi_label: int = 0
    num_other_labels: int = 0
    num_doubled_ids: int = 0
    doubled_ids: list[int] = field(default_factory=list)
    labels: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    image_bytes: Spread = field(default_factory=Spread)
    width: Spread = field(default_factory=Spread)
    height: Spread = field(default_factory=Spread)
    _ids: IdSet = field(default_factory=IdSet)

    def add(self, payload: bytes) -> None:
        record = unpack_image(payload, "")
        self.num_records += 1
        self.num_multi_label += len(record.labels) > 1
        self._add_id(record.record_id)
        self._add_labels(record.labels)
        self._add_image(record.image)

    def as_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "num_records": self.num_records,
            "num_multi_label_records": self.num_multi_label,
            "num_doubled_ids": self.num_doubled_ids,
            "first_doubled_ids": self.doubled_ids,
            "image_bytes": self.image_bytes.as_dict(),
            "width": self.width.as_dict(),
            "height": self.height.as_dict(),
            "formats": dict(self.formats.most_common()),
            "labels": dict(_in_order(self.labels)),
            "num_other_labels": self.num_other_labels,
        }

    def _add_id(self, record_id: int) -> None:
        if not self._ids.add(record_id):
            self.num_doubled_ids += 1
            if len(self.doubled_ids) < _SHOWN_IDS:
                self.doubled_ids.append(record_id)

    def _add_labels(self, labels: Sequence[float]) -> None:
        for label in set(map(format_label, labels)):
            if label in self.labels or len(self.labels) < _MAX_LABELS:
                self.labels[label] += 1
            else:
                self.num_other_labels += 1

    def _add_image(self, image: bytes) -> None:
        self.image_bytes.add(len(image))
        header = find_header(image)
        if isinstance(header, str):
            self.formats[f"no image: {header}"] += 1
        else:
            self.formats[header.format] += 1
            self.width.add(header.width)
            self.height.add(header.height)


def collect_statistics(paths: Sequence[Path], reader: RecordReader) -> Statistics:
    statistics = Statistics()
    with reader.watch("stats", paths):
        for path in paths:
            for found in reader.records(path):
                statistics.add(found.payload)
    return statistics


def format_statistics(statistics: Statistics) -> Iterator[str]:
    """Lines for people; of many labels only the numbers of records are told, not each label."""
    yield f"records           {statistics.num_records:,}"
    yield f"  several labels  {statistics.num_multi_label:,}"
    yield f"  doubled ids     {statistics.num_doubled_ids:,}{_first(statistics.doubled_ids)}"
    yield f"image bytes       {_format_spread(statistics.image_bytes)}"
    yield f"width             {_format_spread(statistics.width)}"
    yield f"height            {_format_spread(statistics.height)}"
    yield from _format_counts("formats", dict(statistics.formats.most_common()))
    yield from _format_labels(statistics)


def _format_labels(statistics: Statistics) -> Iterator[str]:
    if len(statistics.labels) <= _SHOWN_LABELS:
        yield from _format_counts("labels", dict(_in_order(statistics.labels)))
        return
    records_a_label = Spread()
    for count in statistics.labels.values():
        records_a_label.add(count)
    more = "or more, the rest was not told apart" if statistics.num_other_labels else "in all; --json counts each"
    yield f"labels            {len(statistics.labels):,} {more}"
    yield f"records a label   {_format_spread(records_a_label)}"


def _format_counts(title: str, counts: Mapping[str, int]) -> Iterator[str]:
    yield f"{title:<17} {len(counts):,}"
    for name, count in counts.items():
        yield f"  {name:<15} {count:,}"


def _format_spread(spread: Spread) -> str:
    if not spread.count:
        return "-"
    return f"{spread.least:,} to {spread.greatest:,}, mean {spread.total / spread.count:,.1f}"


def _first(ids: Sequence[int]) -> str:
    return f" (first {', '.join(map(str, ids))})" if ids else ""


def _in_order(labels: Mapping[str, int]) -> list[tuple[str, int]]:
    """By value; what is no number comes last."""
    return sorted(labels.items(), key=lambda item: (item[0] == "nan", float(item[0]) if item[0] != "nan" else 0.0))
