"""What verify reports of a dataset: counts, sizes and colour, of what was read back from its chunks."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from imagenet_ops.manifests import (
    NO_STATISTICS,
    ClassManifest,
    ClassReport,
    DatasetManifest,
    DatasetReport,
    ImageIndex,
    SizeReport,
    Split,
)
from imagenet_ops.stages.stage import S, StageRun


@dataclass
class Sizes:
    """Least, sum and greatest of a row of numbers."""

    count: int = 0
    total: int = 0
    least: int = 0
    greatest: int = 0

    def add(self, value: int) -> None:
        self.least = min(self.least, value) if self.count else value
        self.greatest = max(self.greatest, value)
        self.count += 1
        self.total += value

    def report(self) -> SizeReport:
        return SizeReport(least=self.least, mean=round(self.total / max(self.count, 1), 2), greatest=self.greatest)


@dataclass
class Found:
    """What was read back so far."""

    num_records: dict[Split, Counter[int]] = field(
        default_factory=lambda: {"train": Counter(), "validation": Counter()}
    )
    width: Sizes = field(default_factory=Sizes)
    height: Sizes = field(default_factory=Sizes)
    record_bytes: Sizes = field(default_factory=Sizes)


def count_skipped(dataset: DatasetManifest) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for chunk in dataset.chunks:
        reasons.update(chunk.num_skipped_by_reason)
    return reasons


def count_skipped_by_class(dataset: DatasetManifest) -> Counter[str]:
    counts: Counter[str] = Counter()
    for chunk in dataset.chunks:
        counts.update({synset: sum(reasons.values()) for synset, reasons in chunk.num_skipped_by_class.items()})
    return counts


def build_report(run: StageRun[S], dataset: DatasetManifest, found: Found) -> DatasetReport:
    classes = run.read_input("filter_rare_classes", ClassManifest)
    statistics = sum((chunk.statistics for chunk in dataset.chunks), start=NO_STATISTICS)
    moments = statistics.moments
    means = [total / moments.num_pixels for total in moments.sums]
    squares = [total / moments.num_pixels for total in moments.sums_of_squares]
    train, validation = found.num_records["train"], found.num_records["validation"]
    return DatasetReport(
        inputs=run.inputs,
        num_classes_kept=len(classes.kept),
        num_classes_dropped=len(classes.dropped),
        num_train=train.total(),
        num_validation=validation.total(),
        num_chunks=len(dataset.chunks),
        num_bytes=sum(chunk.rec.num_bytes for chunk in dataset.chunks),
        num_rejected_by_reason=run.read_input("untar", ImageIndex).num_rejected_by_reason,
        num_skipped_by_reason=dict(sorted(count_skipped(dataset).items())),
        classes=[
            ClassReport(
                label=entry.label,
                synset=entry.synset,
                name=entry.name,
                num_train=train[entry.label],
                num_validation=validation[entry.label],
            )
            for entry in classes.kept
        ],
        dropped=classes.dropped,
        width_pixels=found.width.report(),
        height_pixels=found.height.report(),
        record_bytes=found.record_bytes.report(),
        statistics=statistics,
        codec=dataset.codec,
        channel_mean=[round(mean, 4) for mean in means],
        channel_std=[round(math.sqrt(square - mean**2), 4) for square, mean in zip(squares, means, strict=True)],
    )
