"""The first half of pack_recordio: which image becomes which record of which chunk.

A split's records are shuffled as a whole by a keyed hash and cut into chunks, so every chunk is a fair sample of all
classes. A record's id is its place in that order; validation goes on counting where training ends, so that an id is
never there twice.
"""

from __future__ import annotations

import polars as pl

from imagenet_ops.adapters.tables import read_table, write_table
from imagenet_ops.domain.chunk_plan import choose_num_chunks, plan_chunks
from imagenet_ops.domain.keyed_hash import keyed_hash
from imagenet_ops.errors import ConfigError
from imagenet_ops.manifests import ClassManifest, ImageIndex, SplitManifest
from imagenet_ops.settings import MAX_CHUNKS
from imagenet_ops.stages.stage import S, StageRun

_IMAGE = ["synset", "name"]
_COLUMNS = ["record_id", "label", "synset", "name", "archive", "offset", "num_bytes"]


def plan_records(run: StageRun[S], seed: int, num_chunks: int, target_chunk_bytes: int | None) -> list[str]:
    """Writes `data/plan_{chunk}.parquet` for every chunk and returns the chunks' names, training first.

    Where `target_chunk_bytes` is given, it and the source images' bytes decide the number of chunks of each split;
    else training has `num_chunks` and validation one.
    """
    images = _labelled_images(run)
    sampled = run.read_input("sample_validation", SplitManifest).validation
    sample = read_table(run.store, run.key_of("sample_validation", sampled.key))
    names = []
    first_id = 0
    for split, rows in (
        ("train", images.join(sample, on=_IMAGE, how="anti")),
        ("validation", images.join(sample, on=_IMAGE, how="semi")),
    ):
        wished = num_chunks if split == "train" else 1
        if target_chunk_bytes is not None:
            wished = choose_num_chunks_or_refuse(int(rows["num_bytes"].sum()), target_chunk_bytes, split)
        shuffled = _shuffle(rows, seed, split, first_id)
        first_id += len(shuffled)
        for chunk in plan_chunks(split, len(shuffled), wished):
            frame = shuffled.slice(chunk.start, chunk.stop - chunk.start)
            write_table(run.store, run.keys, f"plan_{chunk.name}.parquet", frame)
            names.append(chunk.name)
    return names


def choose_num_chunks_or_refuse(num_source_bytes: int, target_chunk_bytes: int, split: str) -> int:
    """Raises ConfigError where that makes more chunks than MAX_CHUNKS, with the smallest size that does not."""
    num_chunks = choose_num_chunks(num_source_bytes, target_chunk_bytes)
    if num_chunks > MAX_CHUNKS:
        raise ConfigError(
            f"target_chunk_bytes: {target_chunk_bytes:,} makes {num_chunks:,} chunks of {num_source_bytes:,} bytes of "
            f"{split} images; at most {MAX_CHUNKS} are allowed, so at least {-(-num_source_bytes // MAX_CHUNKS):,}"
        )
    return num_chunks


def _labelled_images(run: StageRun[S]) -> pl.DataFrame:
    kept = run.read_input("filter_rare_classes", ClassManifest).kept
    labels = pl.DataFrame(
        {"synset": [entry.synset for entry in kept], "label": [entry.label for entry in kept]},
        schema={"synset": pl.String, "label": pl.UInt32},
    )
    parts = [
        read_table(run.store, run.key_of("untar", part.index.key), ["synset", "name", "archive", "offset", "num_bytes"])
        for part in run.read_input("untar", ImageIndex).parts
    ]
    return pl.concat(parts).join(labels, on="synset", how="inner")


def _shuffle(rows: pl.DataFrame, seed: int, split: str, first_id: int) -> pl.DataFrame:
    order = [keyed_hash(seed, f"order {split}", *image) for image in rows.select(_IMAGE).iter_rows()]
    return (
        rows.with_columns(pl.Series("order", order, dtype=pl.UInt64))
        .sort("order", "synset", "name")
        .with_row_index("record_id")
        .with_columns(pl.col("record_id").cast(pl.UInt64) + first_id)
        .select(_COLUMNS)
    )
