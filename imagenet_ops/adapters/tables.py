"""Parquet tables in the store: the same rows give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl

from imagenet_ops.adapters.object_store import ObjectStore
from imagenet_ops.keys import StageKeys
from imagenet_ops.manifests import StoredObject


def write_table(store: ObjectStore, keys: StageKeys, name: str, frame: pl.DataFrame) -> StoredObject:
    """Writes a table whole among a stage's data."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    with store.open_writer(keys.data(name)) as writer:
        writer.write(buffer.getvalue())
    return StoredObject(key=f"data/{name}", num_bytes=writer.num_bytes, sha256=writer.sha256())


def read_table(store: ObjectStore, key: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The rows of a table, in the order in which they were written."""
    return pl.read_parquet(io.BytesIO(store.get(key)), columns=list(columns) if columns else None)
