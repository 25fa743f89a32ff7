from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterator

import pytest

from imagenet_ops.domain.recordio import (
    MAGIC,
    MAX_RECORD_BYTES,
    ImageRecord,
    encode_record,
    iterate_records,
    pack_image,
    unpack_image,
)
from imagenet_ops.errors import DataError

# Written and read back with mxnet 1.9.1: payloads, their offsets, and the file.
GOLDEN_PAYLOADS = [
    b"",
    b"a",
    b"abcd",
    MAGIC,
    b"abcd" + MAGIC,
    b"ab" + MAGIC + b"xy",
    MAGIC + MAGIC,
    b"abcd" + MAGIC + b"efg",
    MAGIC + b"zz",
]
GOLDEN_OFFSETS = [0, 8, 20, 32, 48, 68, 84, 108, 132]
GOLDEN_FILE = bytes.fromhex(
    """
    0a23d7ce00000000
    0a23d7ce0100000061000000
    0a23d7ce0400000061626364
    0a23d7ce00000020 0a23d7ce00000060
    0a23d7ce0400002061626364 0a23d7ce00000060
    0a23d7ce0800000061620a23d7ce7879
    0a23d7ce00000020 0a23d7ce00000040 0a23d7ce00000060
    0a23d7ce0400002061626364 0a23d7ce0300006065666700
    0a23d7ce00000020 0a23d7ce020000607a7a0000
    """
)


class ClaimedLength(bytes):
    """Empty bytes that say they are long, so that no test needs half a gigabyte."""

    length = 0

    def __len__(self) -> int:
        return self.length


def claiming(length: int) -> ClaimedLength:
    payload = ClaimedLength()
    payload.length = length
    return payload


def records_in(file: bytes) -> list[tuple[int, bytes]]:
    return list(iterate_records(io.BytesIO(file).read, "train_00000.rec"))


def fault_in(file: bytes) -> str:
    with pytest.raises(DataError) as caught:
        records_in(file)
    return str(caught.value)


def part(flag: int, body: bytes) -> bytes:
    return MAGIC + struct.pack("<I", flag << 29 | len(body)) + body + bytes(-len(body) % 4)


def payloads_with_magic(seed: int, count: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    pieces = [MAGIC, MAGIC[:1], MAGIC[:3], MAGIC[1:], b"", b"a", b"ab", b"abcd", bytes(4)]
    for _ in range(count):
        yield b"".join(chance.choice(pieces) for _ in range(chance.randrange(12)))


def test_the_golden_payloads_give_mxnets_bytes() -> None:
    assert b"".join(map(encode_record, GOLDEN_PAYLOADS)) == GOLDEN_FILE


def test_mxnets_bytes_give_the_golden_payloads_and_offsets() -> None:
    assert records_in(GOLDEN_FILE) == list(zip(GOLDEN_OFFSETS, GOLDEN_PAYLOADS, strict=True))


def test_an_empty_file_has_no_records() -> None:
    assert records_in(b"") == []


def test_payloads_full_of_magic_come_back_as_they_went_in() -> None:
    payloads = list(payloads_with_magic(seed=7, count=2000))
    assert [payload for _, payload in records_in(b"".join(map(encode_record, payloads)))] == payloads


def test_an_aligned_magic_in_a_file_is_always_the_head_of_a_part() -> None:
    for payload in payloads_with_magic(seed=8, count=500):
        file = encode_record(payload)
        heads, position = [], 0
        while position < len(file):
            heads.append(position)
            length = int.from_bytes(file[position + 4 : position + 8], "little") & MAX_RECORD_BYTES
            position += 8 + -(-length // 4) * 4
        assert [offset for offset in range(0, len(file), 4) if file[offset : offset + 4] == MAGIC] == heads


def test_every_record_ends_at_a_multiple_of_four() -> None:
    assert {len(encode_record(payload)) % 4 for payload in payloads_with_magic(seed=9, count=300)} == {0}


def test_a_record_of_two_to_the_29_bytes_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        encode_record(claiming(2**29))
    assert str(caught.value) == "a record of 536,870,912 bytes; RecordIO holds at most 536,870,911"


def test_a_record_of_one_byte_less_is_taken_and_its_flag_stays_clear() -> None:
    assert encode_record(claiming(2**29 - 1))[:8] == MAGIC + b"\xff\xff\xff\x1f"


FAULTS = {
    "another format's bytes": (
        b"\x89PNG\r\n\x1a\n",
        "train_00000.rec: byte 0: 89504e47 where RecordIO's magic 0a23d7ce is expected",
    ),
    "bytes between two records": (
        part(0, b"abcd") + b"junkjunk",
        "train_00000.rec: byte 12: 6a756e6b where RecordIO's magic 0a23d7ce is expected",
    ),
    "a file cut in a record's head": (
        part(0, b"abcd") + part(0, b"efgh")[:7],
        "train_00000.rec: byte 12: record cut short in its head",
    ),
    "a file cut in a record's bytes": (
        part(0, b"abcd") + part(0, b"efgh")[:-1],
        "train_00000.rec: byte 12: record cut short: 4 bytes expected, 3 left",
    ),
    "a file cut in a record's padding": (
        part(0, b"a")[:-1],
        "train_00000.rec: byte 0: record cut short: 4 bytes expected, 3 left",
    ),
    "a file cut between two parts": (
        part(1, b"abcd"),
        "train_00000.rec: byte 12: record cut short in its head",
    ),
    "a middle part at the start": (
        part(2, b"abcd"),
        "train_00000.rec: byte 0: part flag 2, expected one of [0, 1]",
    ),
    "a last part at the start": (
        part(3, b"abcd"),
        "train_00000.rec: byte 0: part flag 3, expected one of [0, 1]",
    ),
    "a flag that does not exist": (
        part(5, b"abcd"),
        "train_00000.rec: byte 0: part flag 5, expected one of [0, 1]",
    ),
    "a whole record inside another": (
        part(1, b"abcd") + part(0, b"efgh"),
        "train_00000.rec: byte 12: part flag 0, expected one of [2, 3]",
    ),
    "a first part after a first part": (
        part(1, b"abcd") + part(1, b"efgh"),
        "train_00000.rec: byte 12: part flag 1, expected one of [2, 3]",
    ),
    "a length beyond the end": (
        MAGIC + struct.pack("<I", 2000) + bytes(4),
        "train_00000.rec: byte 0: record cut short: 2,000 bytes expected, 4 left",
    ),
}


@pytest.mark.parametrize(("file", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_damage_is_told_with_the_file_and_the_byte(file: bytes, message: str) -> None:
    assert fault_in(file) == message


def test_a_file_cut_anywhere_but_between_records_is_an_error() -> None:
    ends = {*GOLDEN_OFFSETS, len(GOLDEN_FILE)}
    for length in range(len(GOLDEN_FILE)):
        if length in ends:
            assert len(records_in(GOLDEN_FILE[:length])) == sum(offset < length for offset in GOLDEN_OFFSETS)
        else:
            assert fault_in(GOLDEN_FILE[:length]).startswith("train_00000.rec: byte ")


def test_records_before_the_damage_are_still_given() -> None:
    reader = iterate_records(io.BytesIO(part(0, b"abcd") + b"junkjunk").read, "train_00000.rec")
    assert next(reader) == (0, b"abcd")


def test_one_label_lies_in_the_head() -> None:
    golden = bytes.fromhex("00000000 0000e040 7b00000000000000 0000000000000000 7879")
    assert pack_image(ImageRecord(123, (7.0,), b"xy")) == golden
    assert unpack_image(golden, "r") == ImageRecord(123, (7.0,), b"xy")


def test_several_labels_lie_behind_the_head() -> None:
    golden = bytes.fromhex("03000000 00000000 7b00000000000000 0000000000000000 0000803f 00002040 00004040 7879")
    assert pack_image(ImageRecord(123, (1.0, 2.5, 3.0), b"xy")) == golden
    assert unpack_image(golden, "r") == ImageRecord(123, (1.0, 2.5, 3.0), b"xy")


@pytest.mark.parametrize("label", [0, 1, 11_220, 21_840, 2**24])
def test_a_label_up_to_two_to_the_24_is_exact(label: int) -> None:
    assert unpack_image(pack_image(ImageRecord(0, (float(label),), b"")), "r").labels == (label,)


def test_a_record_id_takes_all_64_bits() -> None:
    assert unpack_image(pack_image(ImageRecord(2**64 - 1, (1.0,), b"")), "r").record_id == 2**64 - 1


TOO_SHORT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "in its head": (lambda whole: whole[:23], "r.rec: an image record of 23 bytes; its head alone has 24"),
    "in its labels": (lambda whole: whole[:31], "r.rec: an image record of 31 bytes that claims 2 labels"),
}


@pytest.mark.parametrize(("cut", "message"), TOO_SHORT.values(), ids=TOO_SHORT.keys())
def test_a_payload_too_short_for_an_image_record_is_an_error(cut: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(DataError) as caught:
        unpack_image(cut(pack_image(ImageRecord(1, (1.0, 2.0), b"xy"))), "r.rec")
    assert str(caught.value) == message
