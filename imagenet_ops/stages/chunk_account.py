"""The account of a chunk while it is packed: what became of every planned record, and what packing saw on its way."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from imagenet_ops.errors import DataError
from imagenet_ops.manifests import NO_PIXELS, PackStatistics, PixelMoments
from imagenet_ops.packer.items import Batch, Packed, PackItem

_SHORT_EDGE_STEP = 32


class SkippedItem(NamedTuple):
    """An item without a record, and the reason."""

    item: PackItem
    reason: str


@dataclass
class ChunkAccount:
    """Adds batches up; `num_classes` is the number of labels."""

    num_classes: int
    short_edge_pixels: int
    num_smaller: int = 0
    skipped: list[SkippedItem] = field(default_factory=list)
    num_measured: int = 0
    moments: PixelMoments = NO_PIXELS
    _planned: Counter[int] = field(default_factory=Counter)
    _written: Counter[int] = field(default_factory=Counter)
    _treatments: Counter[str] = field(default_factory=Counter)
    _short_edges: Counter[int] = field(default_factory=Counter)
    _sizes: Counter[int] = field(default_factory=Counter)
    _bytes: Counter[str] = field(default_factory=Counter)

    def add(self, batch: Batch) -> None:
        for item, outcome in zip(batch.items, batch.outcomes, strict=True):
            self._planned[int(item.labels[0])] += 1
            if isinstance(outcome, Packed):
                self._add_packed(item, outcome)
            else:
                self.skipped.append(SkippedItem(item, outcome.reason))

    def _add_packed(self, item: PackItem, packed: Packed) -> None:
        self._written[int(item.labels[0])] += 1
        self._treatments[packed.treatment] += 1
        short_edge = min(packed.width, packed.height)
        self.num_smaller += short_edge < self.short_edge_pixels
        self._short_edges[short_edge // _SHORT_EDGE_STEP * _SHORT_EDGE_STEP] += 1
        self._sizes[1 << (packed.num_image_bytes.bit_length() - 1)] += 1
        self._bytes["source"] += packed.num_source_bytes
        self._bytes["stored"] += packed.num_image_bytes
        self._bytes["dropped"] += packed.num_dropped_bytes
        if packed.moments is not None:
            num_pixels, sums, sums_of_squares = packed.moments
            self.num_measured += 1
            self.moments += PixelMoments(num_pixels=num_pixels, sums=sums, sums_of_squares=sums_of_squares)

    @property
    def num_planned_by_label(self) -> list[int]:
        return [self._planned[label] for label in range(self.num_classes)]

    @property
    def num_records_by_label(self) -> list[int]:
        return [self._written[label] for label in range(self.num_classes)]

    def num_skipped_by_class(self) -> dict[str, dict[str, int]]:
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for item, reason in self.skipped:
            counts[item.name.partition("/")[0]][reason] += 1
        return {synset: dict(sorted(reasons.items())) for synset, reasons in sorted(counts.items())}

    def statistics(self) -> PackStatistics:
        return PackStatistics(
            num_by_treatment=dict(sorted(self._treatments.items())),
            num_smaller=self.num_smaller,
            num_source_bytes=self._bytes["source"],
            num_stored_bytes=self._bytes["stored"],
            num_dropped_bytes=self._bytes["dropped"],
            short_edge_histogram=dict(sorted(self._short_edges.items())),
            stored_bytes_histogram=dict(sorted(self._sizes.items())),
            num_measured=self.num_measured,
            moments=self.moments,
        )

    def require_complete(self, name: str, num_planned: int) -> None:
        """Raises DataError where a planned record is neither written nor skipped."""
        if self._planned.total() != num_planned or self._written.total() + len(self.skipped) != num_planned:
            raise DataError(
                f"chunk {name}: {num_planned:,} records planned, {self._written.total():,} written, "
                f"{len(self.skipped):,} skipped"
            )
