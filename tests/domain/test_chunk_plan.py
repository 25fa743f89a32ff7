from __future__ import annotations

import pytest

from imagenet_ops.domain.chunk_plan import ChunkRange, choose_num_chunks, plan_chunks


def test_ten_records_in_four_chunks_are_three_three_two_two() -> None:
    assert plan_chunks("train", 10, 4) == [
        ChunkRange("train_00000", 0, 3),
        ChunkRange("train_00001", 3, 6),
        ChunkRange("train_00002", 6, 8),
        ChunkRange("train_00003", 8, 10),
    ]


@pytest.mark.parametrize("num_chunks", [1, 2, 3, 7, 8, 1024])
@pytest.mark.parametrize("num_records", [1, 2, 7, 8, 9, 1000, 11_797_630])
def test_chunks_cover_all_records_once_and_differ_by_one_at_most(num_records: int, num_chunks: int) -> None:
    plan = plan_chunks("train", num_records, num_chunks)
    sizes = [chunk.stop - chunk.start for chunk in plan]
    assert len(plan) == min(num_chunks, num_records)
    assert [chunk.start for chunk in plan] == [0, *(chunk.stop for chunk in plan[:-1])]
    assert plan[-1].stop == num_records
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_fewer_records_than_chunks_leave_no_empty_chunk() -> None:
    assert plan_chunks("train", 2, 8) == [ChunkRange("train_00000", 0, 1), ChunkRange("train_00001", 1, 2)]


def test_one_record_is_one_chunk() -> None:
    assert plan_chunks("validation", 1, 1) == [ChunkRange("validation_00000", 0, 1)]


def test_no_record_is_no_chunk() -> None:
    assert plan_chunks("validation", 0, 1) == []


@pytest.mark.parametrize(
    ("num_source_bytes", "num_chunks"), [(0, 1), (1, 1), (2**30, 1), (3 * 2**29 + 1, 2), (1_200_000_000_000, 1118)]
)
def test_source_bytes_decide_the_number_of_chunks(num_source_bytes: int, num_chunks: int) -> None:
    assert choose_num_chunks(num_source_bytes, 2**30) == num_chunks
