"""pack_recordio: the plan of every chunk, then one task a chunk that reads, transcodes and writes its records.

data/plan_train_00000.parquet      record_id, label, synset, name, archive, offset, num_bytes
data/train_00000.rec .idx .lst     the chunk, as MXNet reads it
data/skipped_train_00000.parquet   record_id, synset, name, reason: planned, and not in the chunk
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import ExitStack
from typing import NamedTuple

import polars as pl

from imagenet_ops.adapters.image_codec import UnusableImage, measure, transcode
from imagenet_ops.adapters.object_store import ObjectWriter
from imagenet_ops.adapters.tables import read_table, write_table
from imagenet_ops.domain.image_list import format_list_line
from imagenet_ops.domain.recordio import ImageRecord, encode_record, pack_image
from imagenet_ops.errors import ChecksumMismatch, DataError
from imagenet_ops.manifests import (
    NO_PIXELS,
    ArchiveManifest,
    Chunk,
    ClassManifest,
    DatasetManifest,
    PixelMoments,
    SplitManifest,
)
from imagenet_ops.settings import Settings
from imagenet_ops.stages.plan_records import plan_records
from imagenet_ops.stages.stage import MappedStage, StageContext, StageRun

log = logging.getLogger(__name__)
_SKIPPED = {"record_id": pl.UInt64, "synset": pl.String, "name": pl.String, "reason": pl.String}
_FILES = ("rec", "idx", "lst")


class PackSettings(Settings):
    """What the stored images are, and how they are dealt to chunks."""

    seed: int
    short_edge_pixels: int
    jpeg_quality: int
    num_chunks: int
    target_chunk_bytes: int | None


class PlannedRecord(NamedTuple):
    """A row of a chunk's plan."""

    record_id: int
    label: int
    synset: str
    name: str
    archive: int
    offset: int
    num_bytes: int


class ChunkWriter:
    """The three files of a chunk, record by record."""

    def __init__(self, rec: ObjectWriter, idx: ObjectWriter, lst: ObjectWriter) -> None:
        self.rec, self.idx, self.lst = rec, idx, lst
        self.moments = NO_PIXELS

    def add(self, row: PlannedRecord, jpeg: bytes, moments: PixelMoments) -> None:
        self.idx.write(f"{row.record_id}\t{self.rec.num_bytes}\n".encode())
        self.rec.write(encode_record(pack_image(ImageRecord(row.record_id, (float(row.label),), jpeg))))
        self.lst.write(format_list_line(row.record_id, row.label, row.synset, row.name).encode())
        self.moments += moments


def _read_settings(context: StageContext) -> PackSettings:
    return PackSettings.model_validate(context.dataset.model_dump(include=set(PackSettings.model_fields)))


def _plan(run: StageRun[PackSettings]) -> list[str]:
    settings = run.settings
    return plan_records(run, settings.seed, settings.num_chunks, settings.target_chunk_bytes)


def _build_part(run: StageRun[PackSettings], name: str) -> Chunk:
    plan_name = f"plan_{name}.parquet"
    plan = read_table(run.store, run.keys.data(plan_name))
    archives = [run.key_of("download", archive.key) for archive in run.read_input("download", ArchiveManifest).archives]
    skipped: list[tuple[int, str, str, str]] = []
    with ExitStack() as stack:
        rec, idx, lst = (stack.enter_context(run.store.open_writer(run.keys.data(f"{name}.{end}"))) for end in _FILES)
        chunk = ChunkWriter(rec, idx, lst)
        progress = stack.enter_context(run.context.progress.task(f"pack {name}", len(plan), "records"))
        for row in map(PlannedRecord._make, plan.iter_rows()):
            try:
                image = transcode(_read(run, archives, row), run.settings.short_edge_pixels, run.settings.jpeg_quality)
                chunk.add(row, image.jpeg, measure(image.pixels))
            except UnusableImage as reason:
                log.warning("skipped %s/%s: %s", row.synset, row.name, reason)
                skipped.append((row.record_id, row.synset, row.name, str(reason)))
            progress.advance(1)
    left_out = pl.DataFrame(skipped, schema=_SKIPPED, orient="row")
    return Chunk(
        name=name,
        split="train" if name.startswith("train_") else "validation",
        num_planned=len(plan),
        num_records=len(plan) - len(skipped),
        num_skipped_by_reason=dict(sorted(Counter(row[-1] for row in skipped).items())),
        plan_key=f"data/{plan_name}",
        skipped=write_table(run.store, run.keys, f"skipped_{name}.parquet", left_out),
        rec=run.stored(f"{name}.rec", rec),
        idx=run.stored(f"{name}.idx", idx),
        lst=run.stored(f"{name}.lst", lst),
        moments=chunk.moments,
    )


def _read(run: StageRun[PackSettings], archives: list[str], row: PlannedRecord) -> bytes:
    data = run.store.get_range(archives[row.archive], row.offset, row.num_bytes)
    if len(data) != row.num_bytes:
        raise ChecksumMismatch(
            f"{archives[row.archive]}: {row.num_bytes:,} bytes expected at {row.offset:,}, {len(data):,} found; "
            "the archive has changed since it was indexed"
        )
    return data


def _finish(run: StageRun[PackSettings], parts: list[Chunk]) -> DatasetManifest:
    split = run.read_input("sample_validation", SplitManifest)
    num_planned = Counter({"train": 0, "validation": 0})
    for chunk in parts:
        num_planned[chunk.split] += chunk.num_planned
        if chunk.num_records + sum(chunk.num_skipped_by_reason.values()) != chunk.num_planned:
            raise DataError(f"chunk {chunk.name}: written and skipped records do not add up to those planned")
    if num_planned != {"train": split.num_train, "validation": split.num_validation}:
        raise DataError(
            f"{run.keys.folder}: {dict(num_planned)} records planned, the split has {split.num_train} and "
            f"{split.num_validation}"
        )
    num_classes = len(run.read_input("filter_rare_classes", ClassManifest).kept)
    return DatasetManifest(inputs=run.inputs, num_classes=num_classes, chunks=parts)


STAGE = MappedStage(
    name="pack_recordio",
    version=1,
    title="Resize the images and pack them into RecordIO chunks",
    manifest=DatasetManifest,
    part=Chunk,
    read_settings=_read_settings,
    plan=_plan,
    build_part=_build_part,
    finish=_finish,
)
