from __future__ import annotations

import pytest

from imagenet_ops.domain.worker_part import count_steps, part_bounds


@pytest.mark.parametrize("num_parts", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("num_records", [0, 1, 2, 15, 16, 17, 1000, 11_797_630])
def test_parts_cover_all_records_once_and_differ_by_one_at_most(num_records: int, num_parts: int) -> None:
    bounds = [part_bounds(num_records, index, num_parts) for index in range(num_parts)]
    assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
    assert bounds[-1][1] == num_records
    sizes = [stop - start for start, stop in bounds]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("num_records", "num_parts", "batch_size", "num_steps"),
    [
        (100, 1, 10, 10),
        (101, 1, 10, 11),
        (100, 2, 10, 5),
        (101, 2, 10, 6),
        (1, 2, 10, 1),
        (100, 3, 34, 1),
        (0, 2, 10, 0),
    ],
)
def test_all_parts_take_as_many_steps_as_the_longest_needs(
    num_records: int, num_parts: int, batch_size: int, num_steps: int
) -> None:
    assert count_steps(num_records, num_parts, batch_size) == num_steps
    longest = max(stop - start for start, stop in (part_bounds(num_records, i, num_parts) for i in range(num_parts)))
    assert (num_steps - 1) * batch_size < longest <= num_steps * batch_size or longest == num_steps == 0
