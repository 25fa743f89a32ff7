from __future__ import annotations

import random
import struct

import pytest

from imagenet_ops.domain.record_scan import FoundRecord, LostRange, scan_records
from imagenet_ops.domain.recordio import MAGIC, ImageRecord, encode_record, pack_image
from tests.builders import jpeg, png

JPEG = jpeg(8, 8)
WITH_MAGIC = JPEG[:2] + b"\xff\xfe\0\x10" + b"ab" + MAGIC + b"cdef" + MAGIC + JPEG[2:]  # its comment holds two magics
RECORDS = [
    ImageRecord(5, (1.0,), JPEG),
    ImageRecord(6, (2.0,), WITH_MAGIC),
    ImageRecord(7, (3.0, 4.0), png(9, 7)),
    ImageRecord(8, (0.0,), jpeg(12, 5, seed=3)),
    ImageRecord(9, (1.0,), jpeg(5, 9, seed=4)),
]
PAYLOADS = [pack_image(record) for record in RECORDS]
ENCODED = [encode_record(payload) for payload in PAYLOADS]
FILE = b"".join(ENCODED)
OFFSETS = [sum(map(len, ENCODED[:index])) for index in range(len(ENCODED) + 1)]


def scan(data: bytes) -> list[FoundRecord | LostRange]:
    return list(scan_records(lambda offset, num_bytes: data[offset : offset + num_bytes], len(data)))


def payloads_in(data: bytes) -> list[bytes]:
    return [found.payload for found in scan(data) if isinstance(found, FoundRecord)]


def losses_in(data: bytes) -> list[LostRange]:
    return [found for found in scan(data) if isinstance(found, LostRange)]


def changed(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def flipped(data: bytes, offset: int, num_bytes: int = 1, mask: int = 0xFF) -> bytes:
    return changed(data, offset, bytes(byte ^ mask for byte in data[offset : offset + num_bytes]))


def without(*indices: int) -> list[bytes]:
    return [payload for index, payload in enumerate(PAYLOADS) if index not in indices]


def head(flag: int, length: int) -> bytes:
    return MAGIC + struct.pack("<I", flag << 29 | length)


def heads_of(index: int) -> list[int]:
    """Offsets of the parts of a record."""
    return [at for at in range(OFFSETS[index], OFFSETS[index + 1], 4) if FILE[at : at + 4] == MAGIC]


def test_a_whole_file_is_found_as_it_was_written() -> None:
    assert len(heads_of(1)) == 3
    assert scan(FILE) == [
        FoundRecord(OFFSETS[index], OFFSETS[index + 1], payload) for index, payload in enumerate(PAYLOADS)
    ]


def test_an_empty_file_has_nothing_and_lost_nothing() -> None:
    assert scan(b"") == []


@pytest.mark.parametrize("garbage", [b"\n", b"text", bytes(4096), MAGIC * 50, random.Random(1).randbytes(3_000_001)])
def test_a_file_of_only_garbage_is_one_lost_range(garbage: bytes) -> None:
    (lost,) = scan(garbage)
    assert (lost.offset, lost.end) == (0, len(garbage))


def test_flipped_bytes_at_a_head_and_a_cut_tail_are_both_named_and_lose_one_record_each() -> None:
    data = flipped(FILE, OFFSETS[2], 4)[:-5]
    assert payloads_in(data) == without(2, 4)
    first, second = losses_in(data)
    assert first == LostRange(
        OFFSETS[2],
        OFFSETS[3],
        f"byte {OFFSETS[2]:,}: f5dc2831 where RecordIO's magic 0a23d7ce is expected",
    )
    assert (second.offset, second.end) == (OFFSETS[4], len(data))
    assert second.reason.startswith(f"byte {OFFSETS[4]:,}: record cut short: ")


@pytest.mark.parametrize("index", range(len(RECORDS)))
@pytest.mark.parametrize("mask", [0x01, 0x02, 0x20, 0x40, 0x60, 0x80, 0xFF])
def test_a_changed_byte_anywhere_in_a_head_costs_at_most_its_own_record(index: int, mask: int) -> None:
    for part in heads_of(index):
        for position in range(part, part + 8):
            data = flipped(FILE, position, mask=mask)
            found = payloads_in(data)
            if len(found) == len(PAYLOADS):  # a length in whose padding the change drowns
                found_image = found.pop(index)
                assert found_image.rstrip(b"\0") == PAYLOADS[index].rstrip(b"\0")
            assert found == without(index), (position, mask)


@pytest.mark.parametrize("index", range(len(RECORDS)))
def test_every_length_and_every_flag_costs_at_most_its_own_record(index: int) -> None:
    for part in heads_of(index):
        for flag in range(8):
            for length in [*range(0, len(FILE) + 9), 2**29 - 1, 2**29 - 4]:
                found = payloads_in(changed(FILE, part, head(flag, length)))
                if len(found) == len(PAYLOADS):
                    assert found.pop(index).rstrip(b"\0") == PAYLOADS[index].rstrip(b"\0")
                assert found == without(index), (part, flag, length)


@pytest.mark.parametrize("index", range(len(RECORDS)))
@pytest.mark.parametrize("num_bytes", [8, 12, 40])
def test_zeros_over_a_head_cost_only_its_own_record(index: int, num_bytes: int) -> None:
    for part in heads_of(index):
        assert payloads_in(changed(FILE, part, bytes(num_bytes))) == without(index), part


def test_changed_bytes_anywhere_touch_no_other_record() -> None:
    chance = random.Random(11)
    for _ in range(3000):
        index = chance.randrange(len(RECORDS))
        start = chance.randrange(OFFSETS[index], OFFSETS[index + 1])
        num_bytes = min(chance.choice([1, 4, 16, 200]), OFFSETS[index + 1] - start)
        found = payloads_in(changed(FILE, start, chance.randbytes(num_bytes)))
        assert [payload for payload in found if payload in PAYLOADS] in (without(index), PAYLOADS)
        assert len(found) <= len(PAYLOADS)


def test_a_file_cut_anywhere_keeps_all_records_before_the_cut() -> None:
    for length in range(len(FILE)):
        num_whole = sum(end <= length for end in OFFSETS[1:])
        assert payloads_in(FILE[:length]) == PAYLOADS[:num_whole]
        assert [(lost.offset, lost.end) for lost in losses_in(FILE[:length])] == (
            [] if length in OFFSETS else [(OFFSETS[num_whole], length)]
        )


@pytest.mark.parametrize("garbage", [b"junk", bytes(4096), MAGIC, MAGIC + bytes(4), head(1, 8) + bytes(8)])
def test_garbage_in_front_between_and_behind_costs_no_record(garbage: bytes) -> None:
    for position in OFFSETS:
        data = FILE[:position] + garbage + FILE[position:]
        assert payloads_in(data) == PAYLOADS
        assert [(lost.offset, lost.end) for lost in losses_in(data)] == [(position, position + len(garbage))]


def test_a_length_that_swallows_its_neighbours_exactly_loses_only_its_own_record() -> None:
    length = OFFSETS[4] - 8
    data = changed(FILE, 0, head(0, length))
    assert payloads_in(data) == without(0)
    assert losses_in(data)[0].reason == (
        f"byte 0: a part of {length:,} bytes, but another's head at byte {OFFSETS[1]:,}"
    )


def test_the_first_part_of_a_record_is_never_given_for_the_whole() -> None:
    data = flipped(FILE, OFFSETS[1] + 7, mask=0x20)  # first part → whole record
    assert payloads_in(data) == without(1)


def test_a_record_whose_neighbour_lost_its_magic_is_kept_even_if_its_image_has_no_end_mark() -> None:
    payloads = [pack_image(ImageRecord(index, (0.0,), b"any bytes, 23 of them..")) for index in range(3)]
    size = len(encode_record(payloads[0]))
    data = flipped(b"".join(map(encode_record, payloads)), size, 4)
    assert payloads_in(data) == [payloads[0], payloads[2]]


@pytest.mark.parametrize("payload", [b"", b"a text", bytes(23), struct.pack("<IfQQ", 1, 0, 0, 0)])
def test_a_record_that_is_no_image_record_is_a_lost_range(payload: bytes) -> None:
    (lost,) = scan(encode_record(payload))
    assert isinstance(lost, LostRange)
    assert lost.reason == f"byte 0: a record of {len(payload)} bytes that is no image record"


def test_padding_that_is_not_zero_means_a_length_that_is_too_small() -> None:
    payload = pack_image(ImageRecord(0, (0.0,), b"abc"))
    data = changed(encode_record(payload), 4, struct.pack("<I", len(payload) - 1))
    assert losses_in(data)[0].reason == "byte 0: a part of 26 bytes, padded with 6300, not zeros"


def test_parts_that_sum_up_to_more_than_a_record_may_have_are_lost() -> None:
    """A reader that answers any middle part with another one: no memory may fill up with them."""
    huge = 2**28
    middle = head(2, huge)

    def read_at(offset: int, num_bytes: int) -> bytes:
        start = head(1, huge) if offset < len(middle) else middle
        position = offset % (huge + 8)
        return (start[position:] + bytes(num_bytes))[:num_bytes]

    first = next(scan_records(read_at, 3 * (huge + 8)))
    assert isinstance(first, LostRange)
    assert first.reason == f"byte {huge + 8:,}: a record of more than 536,870,911 bytes"


def test_offsets_beyond_four_gigabytes_are_exact() -> None:
    start = 2**32 + 2**20 - 8  # the first record lies over the end of a block of the search
    zeros = bytes(2**20)

    def read_at(offset: int, num_bytes: int) -> bytes:
        if offset + num_bytes <= start:
            return zeros[:num_bytes]
        before = min(max(0, start - offset), num_bytes)
        return zeros[:before] + FILE[offset + before - start :][: num_bytes - before]

    lost, *found = scan_records(read_at, start + len(FILE))
    assert (lost.offset, lost.end) == (0, start)
    assert found == [
        FoundRecord(start + OFFSETS[index], start + OFFSETS[index + 1], payload)
        for index, payload in enumerate(PAYLOADS)
    ]
