"""pack_recordio: the plan of every chunk, then one task a chunk that reads, transcodes and writes its records.

data/plan_train_00000.parquet      record_id, label, synset, name, archive, offset, num_bytes
data/train_00000.rec .idx .lst     the chunk, as MXNet reads it
data/train_00000.tar .parquet      the same records for others, where `also_write` says so
data/skipped_train_00000.parquet   record_id, synset, name, reason: planned, and not in the chunk
data/quarantined_train_00000.tar   copies of the skipped images
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing

import polars as pl

from imagenet_ops.adapters.codec_versions import find_slow_jpeg
from imagenet_ops.adapters.quarantine import QuarantinedImage, write_quarantine
from imagenet_ops.adapters.tables import read_table, write_table
from imagenet_ops.errors import ConfigError, DataError
from imagenet_ops.manifests import (
    ArchiveManifest,
    Chunk,
    ClassManifest,
    DatasetManifest,
    Split,
    SplitManifest,
    StoredObject,
)
from imagenet_ops.packer.formats import ChunkFormat, OpenFormat
from imagenet_ops.packer.formats.parquet import open_parquet
from imagenet_ops.packer.formats.recordio import open_recordio
from imagenet_ops.packer.formats.webdataset import open_webdataset
from imagenet_ops.packer.items import PackItem
from imagenet_ops.packer.messages import Setup
from imagenet_ops.packer.packing import Limits, pack_in_order
from imagenet_ops.packer.readers import StoreReader
from imagenet_ops.stages.chunk_account import ChunkAccount
from imagenet_ops.stages.pack_settings import PackSettings, build_codec, codec_of, read_pack_settings
from imagenet_ops.stages.plan_records import plan_records
from imagenet_ops.stages.stage import MappedStage, StageRun

log = logging.getLogger(__name__)
_SKIPPED = {"record_id": pl.UInt64, "synset": pl.String, "name": pl.String, "reason": pl.String}
_OTHER_FORMATS: dict[str, OpenFormat] = {"webdataset": open_webdataset, "parquet": open_parquet}
_NUM_MEASURED = 512  # images of a split, about: the mean colour is then known to one per cent


def _plan(run: StageRun[PackSettings]) -> list[str]:
    settings = run.settings
    return plan_records(run, settings.seed, settings.num_chunks, settings.target_chunk_bytes)


def _build_part(run: StageRun[PackSettings], name: str) -> Chunk:
    _require_same_codec(run.settings)
    plan = read_table(run.store, run.keys.data(f"plan_{name}.parquet"))
    num_classes = len(run.read_input("filter_rare_classes", ClassManifest).kept)
    account = ChunkAccount(num_classes, run.settings.short_edge_pixels)
    items = _items(run, plan, _split_of(name))
    setup = Setup(StoreReader(run.store.url), build_codec(run.settings))
    batches = pack_in_order(items, setup, run.context.num_workers, Limits(run.settings.max_seconds_per_image))
    with ExitStack() as stack:
        folder = run.keys.data("")
        recordio = stack.enter_context(open_recordio(run.store, folder, name))
        others = {
            kind: stack.enter_context(_OTHER_FORMATS[kind](run.store, folder, name)) for kind in run.settings.also_write
        }
        progress = stack.enter_context(run.context.progress.task(f"pack {name}", len(plan), "records"))
        for batch in stack.enter_context(closing(batches)):
            for chunk_format in (recordio, *others.values()):
                chunk_format.add(batch)
            account.add(batch)
            progress.advance(len(batch.items))
    account.require_complete(name, len(plan))
    files = _stored(run, recordio)
    return Chunk(
        name=name,
        split=_split_of(name),
        num_planned=len(plan),
        num_records=len(plan) - len(account.skipped),
        num_planned_by_label=account.num_planned_by_label,
        num_records_by_label=account.num_records_by_label,
        num_skipped_by_class=account.num_skipped_by_class(),
        plan_key=f"data/plan_{name}.parquet",
        skipped=_write_skipped(run, name, account),
        quarantined=_write_quarantined(run, name, account),
        rec=files[f"{name}.rec"],
        idx=files[f"{name}.idx"],
        lst=files[f"{name}.lst"],
        other_formats={kind: next(iter(_stored(run, other).values())) for kind, other in others.items()},
        statistics=account.statistics(),
    )


def _split_of(name: str) -> Split:
    return "train" if name.startswith("train_") else "validation"


def _require_same_codec(settings: PackSettings) -> None:
    here = codec_of(settings.profile)
    if here != settings.codec:
        raise ConfigError(
            f"codec: this machine has {here}, the plan was made with {settings.codec}; bytes would differ"
        )
    if settings.profile == "im2rec" and (slow := find_slow_jpeg()):
        log.warning("%s", slow)


def _items(run: StageRun[PackSettings], plan: pl.DataFrame, split: Split) -> Iterator[PackItem]:
    archives = [run.key_of("download", archive.key) for archive in run.read_input("download", ArchiveManifest).archives]
    counts = run.read_input("sample_validation", SplitManifest)
    num_records = counts.num_train if split == "train" else counts.num_validation
    step = max(1, num_records // _NUM_MEASURED)
    for record_id, label, synset, name, archive, offset, num_bytes in plan.iter_rows():
        measured = record_id % step == 0
        yield PackItem(record_id, (float(label),), f"{synset}/{name}", archives[archive], offset, num_bytes, measured)


def _stored(run: StageRun[PackSettings], chunk_format: ChunkFormat) -> dict[str, StoredObject]:
    return {name: run.stored(name, writer) for name, writer in chunk_format.writers.items()}


def _write_skipped(run: StageRun[PackSettings], name: str, account: ChunkAccount) -> StoredObject:
    rows = [(item.record_id, *item.name.split("/", 1), reason) for item, reason in account.skipped]
    for _, synset, image, reason in rows:
        log.warning("skipped %s/%s: %s", synset, image, reason)
    frame = pl.DataFrame(rows, schema=_SKIPPED, orient="row")
    return write_table(run.store, run.keys, f"skipped_{name}.parquet", frame)


def _write_quarantined(run: StageRun[PackSettings], name: str, account: ChunkAccount) -> StoredObject | None:
    if not account.skipped:
        return None
    images = (
        QuarantinedImage(
            item.record_id, item.name, reason, run.store.get_range(item.place, item.offset, item.num_bytes or 0)
        )
        for item, reason in account.skipped
    )
    with run.store.open_writer(run.keys.data(f"quarantined_{name}.tar")) as writer:
        write_quarantine(writer, images)
    return run.stored(f"quarantined_{name}.tar", writer)


def _finish(run: StageRun[PackSettings], parts: list[Chunk]) -> DatasetManifest:
    split = run.read_input("sample_validation", SplitManifest)
    num_planned = Counter({"train": 0, "validation": 0})
    for chunk in parts:
        num_planned[chunk.split] += chunk.num_planned
    if num_planned != {"train": split.num_train, "validation": split.num_validation}:
        raise DataError(
            f"{run.keys.folder}: {dict(num_planned)} records planned, the split has {split.num_train} and "
            f"{split.num_validation}"
        )
    num_classes = len(run.read_input("filter_rare_classes", ClassManifest).kept)
    return DatasetManifest(inputs=run.inputs, num_classes=num_classes, codec=run.settings.codec, chunks=parts)


STAGE = MappedStage(
    name="pack_recordio",
    version=2,
    title="Resize the images and pack them into RecordIO chunks",
    manifest=DatasetManifest,
    part=Chunk,
    read_settings=read_pack_settings,
    plan=_plan,
    build_part=_build_part,
    finish=_finish,
    parts_use_workers=True,
)
