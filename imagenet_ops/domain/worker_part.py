"""What one of several workers reads: the same number of steps for all, every record read by one of them."""

from __future__ import annotations


def part_bounds(num_records: int, part_index: int, num_parts: int) -> tuple[int, int]:
    """Records `start` to `stop` (exclusive) of the part; parts differ by one record at most and cover all."""
    return num_records * part_index // num_parts, num_records * (part_index + 1) // num_parts


def count_steps(num_records: int, num_parts: int, batch_size: int) -> int:
    """Steps of an epoch, equal for all parts: as many as the longest part needs; a shorter one repeats some records."""
    longest = -(-num_records // num_parts)
    return -(-longest // batch_size)
