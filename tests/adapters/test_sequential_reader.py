from __future__ import annotations

import hashlib
import random

import pytest

from imagenet_ops.adapters.sequential_reader import SequentialReader
from imagenet_ops.domain.recordio import encode_record, iterate_records
from tests.fakes import MemoryStore


@pytest.fixture(params=[1, 7, 64, 2**23])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("imagenet_ops.adapters.sequential_reader._BLOCK_BYTES", request.param)
    return int(request.param)


def reader_over(data: bytes) -> SequentialReader:
    store = MemoryStore()
    store.put("a", data)
    return SequentialReader(store, "a")


def test_reads_of_any_size_give_the_object_in_order(block_bytes: int) -> None:
    chance = random.Random(block_bytes)
    data = chance.randbytes(1000)
    reader = reader_over(data)
    pieces = []
    while piece := reader.read(chance.randrange(1, 90)):
        pieces.append(piece)
    assert b"".join(pieces) == data
    assert reader.sha256() == hashlib.sha256(data).hexdigest()


def test_only_the_last_read_is_short(block_bytes: int) -> None:
    reader = reader_over(bytes(100))
    assert [len(reader.read(30)) for _ in range(5)] == [30, 30, 30, 10, 0]


def test_records_are_read_across_blocks(block_bytes: int) -> None:
    payloads = [bytes([length]) * length for length in range(40)]
    reader = reader_over(b"".join(map(encode_record, payloads)))
    assert [payload for _, payload in iterate_records(reader.read, "a")] == payloads


def test_an_empty_object_gives_nothing(block_bytes: int) -> None:
    reader = reader_over(b"")
    assert (reader.read(10), reader.sha256()) == (b"", hashlib.sha256().hexdigest())
