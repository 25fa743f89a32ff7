"""The typed values that stages hand on, each one JSON object in the store.

    ArchiveManifest → ImageIndex → ClassManifest → SplitManifest → DatasetManifest → DatasetReport → TrainedModel

A manifest names the objects beside it by keys relative to its own folder, and its inputs by key and digest. No clock
and no address goes in, so the same inputs give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from imagenet_ops.errors import DataError
from imagenet_ops.settings import TrainingSettings

Split = Literal["train", "validation"]
K = TypeVar("K", str, int)


class Value(BaseModel):
    """Base of everything that goes through JSON: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> bytes:
        """Canonical: sorted keys, one fixed indentation, UTF-8."""
        return _canonical_json(self.model_dump(mode="json"))

    @classmethod
    def from_json(cls, key: str, data: bytes) -> Self:
        """Raises DataError, naming `key`, where the bytes are not such a value."""
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise DataError(f"{key}: not a {cls.__name__}: {error.errors()[0]['msg']}") from None


class ManifestRef(Value):
    """One input of a stage: where its manifest lies and what was in it."""

    key: str
    digest: str


class Manifest(Value):
    """Base of the manifests; `inputs` maps every earlier stage of the pipeline to its manifest."""

    inputs: dict[str, ManifestRef]


class Lineage(Value):
    """Any manifest, of which only the inputs matter."""

    model_config = ConfigDict(extra="ignore")

    inputs: dict[str, ManifestRef]


def manifest_digest(data: bytes) -> str:
    """SHA-256 of a manifest's content; where its inputs lie does not count, what was in them does."""
    content = json.loads(data)
    content["inputs"] = {stage: ref["digest"] for stage, ref in content["inputs"].items()}
    return hashlib.sha256(_canonical_json(content)).hexdigest()


class StagePlan(Manifest):
    """What a mapped stage will do: written once, read by each of its parts."""

    settings: dict[str, Any]
    part_names: list[str]


class StoredObject(Value):
    """An object beside its manifest; `key` is relative to the stage's folder (`data/train_00003.rec`)."""

    key: str
    num_bytes: int
    sha256: str


class ArchiveManifest(Manifest):
    """download: the archives as they lie in the store."""

    archives: list[StoredObject]
    synset_names: StoredObject | None


class ClassCount(Value):
    """Members of one class that are images, and that are not."""

    synset: str
    num_images: int
    num_rejected: int


class IndexPart(Value):
    """untar: the index of one group of classes; parquet columns are in `stages/untar.py`."""

    index: StoredObject
    rejected: StoredObject
    classes: list[ClassCount]
    num_rejected_by_reason: dict[str, int]


class ImageIndex(Manifest):
    """untar: every image of the archives as a byte range."""

    parts: list[IndexPart]
    num_images: int
    num_rejected_by_reason: dict[str, int]


class LabelledClass(Value):
    """A kept class; `name` is for people and may be its synset."""

    label: int
    synset: str
    name: str
    num_images: int


class DroppedClass(Value):
    """A class with too few images."""

    synset: str
    name: str
    num_images: int


class ClassManifest(Manifest):
    """filter_rare_classes: the one label table, by label, that every later stage uses."""

    kept: list[LabelledClass]
    dropped: list[DroppedClass]


class SplitManifest(Manifest):
    """sample_validation: the images of the validation split; all others of the kept classes train."""

    validation: StoredObject
    num_train: int
    num_validation: int


class PixelMoments(Value):
    """Exact sums over pixels, so that parts add up in any order; red, green, blue."""

    num_pixels: int
    sums: list[int]
    sums_of_squares: list[int]

    def __add__(self, other: PixelMoments) -> PixelMoments:
        return PixelMoments(
            num_pixels=self.num_pixels + other.num_pixels,
            sums=[a + b for a, b in zip(self.sums, other.sums, strict=True)],
            sums_of_squares=[a + b for a, b in zip(self.sums_of_squares, other.sums_of_squares, strict=True)],
        )


NO_PIXELS = PixelMoments(num_pixels=0, sums=[0, 0, 0], sums_of_squares=[0, 0, 0])


class PackStatistics(Value):
    """What packing saw on its way; parts add up.

    `num_smaller` images have a short edge below the one that was set. Bytes are of the images without their record's
    head. A histogram maps the lower bound of a range to a count: short edges in steps of 32 pixels, stored bytes in
    powers of two. Moments are of `num_measured` records, drawn evenly.
    """

    num_by_treatment: dict[str, int]
    num_smaller: int
    num_source_bytes: int
    num_stored_bytes: int
    num_dropped_bytes: int
    short_edge_histogram: dict[int, int]
    stored_bytes_histogram: dict[int, int]
    num_measured: int
    moments: PixelMoments

    def __add__(self, other: PackStatistics) -> PackStatistics:
        return PackStatistics(
            num_by_treatment=_add_counts(self.num_by_treatment, other.num_by_treatment),
            num_smaller=self.num_smaller + other.num_smaller,
            num_source_bytes=self.num_source_bytes + other.num_source_bytes,
            num_stored_bytes=self.num_stored_bytes + other.num_stored_bytes,
            num_dropped_bytes=self.num_dropped_bytes + other.num_dropped_bytes,
            short_edge_histogram=_add_counts(self.short_edge_histogram, other.short_edge_histogram),
            stored_bytes_histogram=_add_counts(self.stored_bytes_histogram, other.stored_bytes_histogram),
            num_measured=self.num_measured + other.num_measured,
            moments=self.moments + other.moments,
        )


NO_STATISTICS = PackStatistics(
    num_by_treatment={},
    num_smaller=0,
    num_source_bytes=0,
    num_stored_bytes=0,
    num_dropped_bytes=0,
    short_edge_histogram={},
    stored_bytes_histogram={},
    num_measured=0,
    moments=NO_PIXELS,
)


class Chunk(Value):
    """pack_recordio: one `.rec` with its `.idx` and `.lst`, and the same records in other formats.

    Of every class, by label, the records planned and written; the others were skipped, counted by class and reason.
    `quarantined` holds copies of skipped images; None where none was skipped.
    """

    name: str
    split: Split
    num_planned: int
    num_records: int
    num_planned_by_label: list[int]
    num_records_by_label: list[int]
    num_skipped_by_class: dict[str, dict[str, int]]
    plan_key: str
    skipped: StoredObject
    quarantined: StoredObject | None
    rec: StoredObject
    idx: StoredObject
    lst: StoredObject
    other_formats: dict[str, StoredObject]
    statistics: PackStatistics

    @property
    def num_skipped_by_reason(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for reasons in self.num_skipped_by_class.values():
            counts = _add_counts(counts, reasons)
        return counts


class DatasetManifest(Manifest):
    """pack_recordio: the packed dataset, and the codec libraries whose versions decide its bytes."""

    num_classes: int
    codec: dict[str, str]
    chunks: list[Chunk]


class ClassReport(Value):
    """Records of one class as read back from the chunks."""

    label: int
    synset: str
    name: str
    num_train: int
    num_validation: int


class SizeReport(Value):
    """Least, mean and greatest of the stored images, in pixels or bytes."""

    least: int
    mean: float
    greatest: int


class DatasetReport(Manifest):
    """verify: what was read back, and how it compares with the plan. Means are of RGB, 0 to 255."""

    num_classes_kept: int
    num_classes_dropped: int
    num_train: int
    num_validation: int
    num_chunks: int
    num_bytes: int
    num_rejected_by_reason: dict[str, int]
    num_skipped_by_reason: dict[str, int]
    classes: list[ClassReport]
    dropped: list[DroppedClass]
    width_pixels: SizeReport
    height_pixels: SizeReport
    record_bytes: SizeReport
    statistics: PackStatistics
    codec: dict[str, str]
    channel_mean: list[float]
    channel_std: list[float]


class EpochMetrics(Value):
    """One epoch; loss is mean cross-entropy, top-1 and top-5 are shares of 0 to 1."""

    epoch: int
    learning_rate: float
    train_loss: float
    train_top1: float
    validation_loss: float
    validation_top1: float
    validation_top5: float
    num_validation: int


class TrainerChunk(Value):
    """A chunk as the trainer reads it, by full keys."""

    rec_key: str
    idx_key: str
    num_records: int


class TrainerJob(Value):
    """All that the trainer is told; its outputs go under `data_prefix`."""

    data_prefix: str
    seed: int
    training: TrainingSettings
    num_classes: int
    channel_mean: list[float]
    channel_std: list[float]
    train_chunks: list[TrainerChunk]
    validation_chunks: list[TrainerChunk]


class TrainerResult(Value):
    """What the trainer leaves when it has ended well; keys are relative like a manifest's."""

    symbol: StoredObject
    parameters: StoredObject
    epochs: list[EpochMetrics]


class TrainedModel(Manifest):
    """train: the classifier of the last epoch, as MXNet's symbol and parameter files."""

    symbol: StoredObject
    parameters: StoredObject
    epochs: list[EpochMetrics]


def _add_counts(counts: Mapping[K, int], more: Mapping[K, int]) -> dict[K, int]:
    added = Counter(counts) + Counter(more)
    return dict(sorted(added.items()))


def _canonical_json(value: Any) -> bytes:
    return (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()
