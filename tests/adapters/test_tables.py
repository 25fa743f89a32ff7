from __future__ import annotations

import hashlib

import polars as pl
import pytest

from imagenet_ops.adapters.tables import read_table, write_table
from imagenet_ops.errors import ObjectNotFound
from imagenet_ops.keys import StageKeys
from tests.fakes import MemoryStore

KEYS = StageKeys("demo", "untar", "0123456789abcdef")
FRAME = pl.DataFrame(
    {"name": ["b", "ä", "a"], "offset": [2**63, 0, 1], "label": [1, 2, 3]},
    schema={"name": pl.String, "offset": pl.UInt64, "label": pl.UInt32},
)


def test_rows_come_back_in_their_order_with_their_types() -> None:
    store = MemoryStore()
    stored = write_table(store, KEYS, "index_00000.parquet", FRAME)
    key = KEYS.inside(stored.key)
    assert key == "demo/untar/0123456789abcdef/data/index_00000.parquet"
    read = read_table(store, key)
    assert (read.rows(), read.schema) == (FRAME.rows(), FRAME.schema)


def test_the_stored_object_tells_size_and_digest() -> None:
    store = MemoryStore()
    stored = write_table(store, KEYS, "a.parquet", FRAME)
    data = store.get(KEYS.inside(stored.key))
    assert (stored.num_bytes, stored.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_the_same_rows_give_the_same_bytes() -> None:
    digests = {write_table(MemoryStore(), KEYS, "a.parquet", FRAME.clone()).sha256 for _ in range(3)}
    assert len(digests) == 1


def test_only_the_asked_columns_come_in_the_asked_order() -> None:
    store = MemoryStore()
    stored = write_table(store, KEYS, "a.parquet", FRAME)
    assert read_table(store, KEYS.inside(stored.key), ["label", "name"]).rows() == [(1, "b"), (2, "ä"), (3, "a")]


def test_a_table_without_rows_keeps_its_columns() -> None:
    store = MemoryStore()
    stored = write_table(store, KEYS, "a.parquet", FRAME.clear())
    assert read_table(store, KEYS.inside(stored.key)).schema == FRAME.schema


def test_a_missing_table_is_a_missing_object() -> None:
    with pytest.raises(ObjectNotFound):
        read_table(MemoryStore(), "demo/untar/x/data/a.parquet")
