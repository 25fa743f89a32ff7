from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Callable, Mapping

import pytest

from imagenet_ops.domain.tar_index import TarMember, is_tar, iterate_members
from imagenet_ops.errors import DataError
from tests.builders import TarFormat, class_tars, padded, tar, tar_header, tar_member, tar_of

FORMATS: list[TarFormat] = ["ustar", "gnu", "pax"]
END = bytes(1024)


def members_of(data: bytes) -> list[TarMember]:
    return list(iterate_members(reader_of(data), 0, len(data), "a.tar"))


def reader_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, num_bytes: data[offset : offset + num_bytes]


def fault_in(data: bytes) -> str:
    with pytest.raises(DataError) as caught:
        members_of(data)
    return str(caught.value)


def pythons_members(data: bytes) -> list[tuple[str, int, int]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return [(info.name, info.offset_data, info.size) for info in archive if info.isfile()]


def files_of(data: bytes) -> list[tuple[str, int, int]]:
    return [(member.name, member.offset, member.num_bytes) for member in members_of(data) if member.kind == "file"]


class Sparse:
    """Zeros without end, but for the pieces laid into it: archives of terabytes in a few hundred bytes."""

    def __init__(self, pieces: Mapping[int, bytes]) -> None:
        self._pieces = pieces

    def read_at(self, offset: int, num_bytes: int) -> bytes:
        found = bytearray(num_bytes)
        for start, piece in self._pieces.items():
            low, high = max(start, offset), min(start + len(piece), offset + num_bytes)
            if low < high:
                found[low - offset : high - offset] = piece[low - start : high - start]
        return bytes(found)


@pytest.mark.parametrize("tar_format", FORMATS)
def test_members_are_where_python_finds_them(tar_format: TarFormat) -> None:
    members = {"n01/a.JPEG": b"x", "n01/empty": b"", "n02/b.JPEG": bytes(512), "n02/c": b"y" * 513}
    data = tar(members, tar_format)
    assert files_of(data) == pythons_members(data)
    assert {member.name: data[member.offset :][: member.num_bytes] for member in members_of(data)} == members


LONG_NAMES = {
    "ustar's prefix": ("ustar", "a" * 90 + "/" + "b" * 99),
    "GNU's long name": ("gnu", "folder/" * 40 + "b" * 200),
    "GNU's long name of exactly 100 bytes": ("gnu", "n" * 100),
    "GNU's long name of 101 bytes": ("gnu", "n" * 101),
    "pax's path": ("pax", "folder/" * 40 + "b" * 200),
    "pax's path with umlauts": ("pax", "n01/Löwenzahn im Frühling.JPEG"),
    "pax's path with a line break": ("pax", "n01/two\nlines=" + "x" * 200),
    "GNU's UTF-8": ("gnu", "n01/Löwenzahn.JPEG"),
}


@pytest.mark.parametrize(("tar_format", "name"), LONG_NAMES.values(), ids=LONG_NAMES.keys())
def test_a_long_or_foreign_name_is_whole(tar_format: TarFormat, name: str) -> None:
    data = tar({name: b"xyz", "after": b"1"}, tar_format)
    assert [member.name for member in members_of(data)] == [name, "after"]
    assert files_of(data) == pythons_members(data)


@pytest.mark.parametrize("tar_format", FORMATS)
def test_random_archives_are_read_as_python_reads_them(tar_format: TarFormat) -> None:
    chance = random.Random(f"tar {tar_format}")
    longest = 99 if tar_format == "ustar" else 400
    for _ in range(60):
        members = [
            (tar_member("".join(chance.choices("abä/._ ", k=chance.randrange(1, longest))).strip("/ ") or "x"), b"")
            for _ in range(chance.randrange(6))
        ]
        filled = []
        for info, _ in members:
            info.name = info.name.replace("ä", "a") if tar_format == "ustar" else info.name
            data = chance.randbytes(chance.choice([0, 1, 511, 512, 513, 3000]))
            info.size = len(data)
            filled.append((info, data))
        whole = tar_of(*filled, tar_format=tar_format)
        assert files_of(whole) == pythons_members(whole)


@pytest.mark.parametrize("tar_format", ["gnu", "pax"])
def test_a_member_of_more_than_8_gib_is_stepped_over(tar_format: TarFormat) -> None:
    num_bytes = 2**40 + 1  # ustar's octal ends at 2^33: GNU writes base-256, pax a record
    python_format = tarfile.GNU_FORMAT if tar_format == "gnu" else tarfile.PAX_FORMAT
    head = tar_member("huge", num_bytes).tobuf(python_format)
    behind = len(head) + (num_bytes + 511) // 512 * 512
    archive = Sparse({0: head, behind: tar({"after": b"xyz"})})
    assert list(iterate_members(archive.read_at, 0, behind + 2048, "a.tar")) == [
        TarMember("huge", len(head), num_bytes, "file"),
        TarMember("after", behind + 512, 3, "file"),
    ]


def test_a_base_256_size_of_all_its_bytes_is_read() -> None:
    data = tar_header(b"a", size=b"\x80" + (700).to_bytes(11, "big")) + padded(bytes(700)) + END
    assert members_of(data) == [TarMember("a", 512, 700, "file")]


def test_links_folders_and_devices_are_told_by_kind() -> None:
    data = tar_of(
        (tar_member("folder", kind=tarfile.DIRTYPE), b""),
        (tar_member("folder/file", 3), b"xyz"),
        (tar_member("hard", kind=tarfile.LNKTYPE, link="folder/file"), b""),
        (tar_member("soft", kind=tarfile.SYMTYPE, link="folder/file"), b""),
        (tar_member("soft_long", kind=tarfile.SYMTYPE, link="l" * 300), b""),
        (tar_member("pipe", kind=tarfile.FIFOTYPE), b""),
        (tar_member("device", kind=tarfile.BLKTYPE), b""),
        (tar_member("contiguous", 1, kind=tarfile.CONTTYPE), b"c"),
        (tar_member("last", 1), b"l"),
        tar_format="gnu",
    )
    assert [(member.name, member.kind) for member in members_of(data)] == [
        ("folder/", "folder"),
        ("folder/file", "file"),
        ("hard", "hard link"),
        ("soft", "symbolic link"),
        ("soft_long", "symbolic link"),
        ("pipe", "pipe"),
        ("device", "device"),
        ("contiguous", "file"),
        ("last", "file"),
    ]


def test_a_hard_link_that_repeats_its_targets_size_has_no_bytes() -> None:
    data = tar_header(b"link", size=b"00000001000\0", kind=b"1") + tar({"after": b"x"})
    assert [(member.name, member.kind) for member in members_of(data)] == [("link", "hard link"), ("after", "file")]


def test_a_folder_of_an_old_tar_ends_in_a_slash() -> None:
    data = tar_header(b"folder/", kind=b"\0", magic=b"") + tar({"folder/a": b"x"})
    assert [(member.name, member.kind) for member in members_of(data)] == [("folder/", "folder"), ("folder/a", "file")]


def test_an_empty_tar_has_no_members() -> None:
    assert members_of(tar({})) == []


def test_a_name_that_is_not_utf_8_shows_its_bytes() -> None:
    data = tar_header(b"n01/caf\xe9.JPEG", size=b"00000000003\0") + padded(b"xyz") + END
    assert members_of(data) == [TarMember("n01/caf\\xe9.JPEG", 512, 3, "file")]


def test_a_checksum_of_signed_bytes_is_taken() -> None:
    data = tar_header(b"caf\xe9", magic=b"", signed_checksum=True) + END
    assert members_of(data) == [TarMember("caf\\xe9", 512, 0, "file")]


def test_the_prefix_belongs_to_ustar_only() -> None:
    ustar = tar_header(b"name", magic=b"ustar\x0000", prefix=b"prefix")
    gnu = tar_header(b"name", magic=b"ustar  \0", prefix=b"00000001234\0")  # GNU has a time there
    assert [member.name for member in members_of(ustar + gnu + END)] == ["prefix/name", "name"]


def test_a_global_pax_header_is_passed_over() -> None:
    record = b"18 path=elsewhere\n"
    data = tar_header(b"g", size=b"%011o\0" % len(record), kind=b"g") + padded(record) + tar({"a": b"x"})
    assert [member.name for member in members_of(data)] == ["a"]


def test_a_pax_record_counts_for_the_next_member_only() -> None:
    data = tar_of((tar_member("ä" * 80, 1), b"x"), (tar_member("b", 1), b"y"), tar_format="pax")
    assert [member.name for member in members_of(data)] == ["ä" * 80, "b"]


@pytest.mark.parametrize("tar_format", FORMATS)
def test_a_tar_cut_anywhere_before_its_end_is_an_error_and_never_a_shorter_list(tar_format: TarFormat) -> None:
    name = "n" * 90 if tar_format == "ustar" else "lang-ä" * 40
    data = tar({"a": b"x" * 700, name: b"y" * 512, "empty": b"", "z": b"z"}, tar_format)
    for length in range(0, len(data) - 1024 + 512, 256):
        assert fault_in(data[:length]).startswith("a.tar: cut short: expected ")
    assert len(members_of(data[:-512])) == 4  # one zero block left: every member was seen


def test_a_tar_cut_short_says_where_and_what_was_expected() -> None:
    data = tar({"a": b"x" * 700, "b": b"y"})
    assert {length: fault_in(data[:length]) for length in (0, 300, 1000, 1300, 1536, 2048)} == {
        0: "a.tar: cut short: expected a member's header or the two zero blocks of the end at byte 0",
        300: "a.tar: cut short: expected a member's header or the two zero blocks of the end at byte 0",
        1000: "a.tar: cut short: expected 700 bytes of a at byte 512",
        1300: "a.tar: cut short: expected a member's header or the two zero blocks of the end at byte 1,536",
        1536: "a.tar: cut short: expected a member's header or the two zero blocks of the end at byte 1,536",
        2048: "a.tar: cut short: expected 1 bytes of b at byte 2,048",
    }


def test_an_object_shorter_than_promised_is_an_error() -> None:
    data = tar({"a": b"x" * 700, "b": b"y" * 700})
    for length in range(0, len(data) - 1024, 512):
        with pytest.raises(DataError, match="cut short"):
            list(iterate_members(reader_of(data[:length]), 0, len(data), "a.tar"))


def test_any_flipped_byte_of_a_header_is_an_error() -> None:
    data = tar({"a": b"x", "b": b"y"})
    for position in range(1024, 1536):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        assert fault_in(bytes(damaged)) == "a.tar: byte 1,024: not a tar header (its checksum is wrong)"


def test_members_before_the_damage_are_still_given() -> None:
    data = tar({"a": b"x", "b": b"y"})
    reader = iterate_members(reader_of(data[:1024]), 0, 1024, "a.tar")
    assert next(reader) == TarMember("a", 512, 1, "file")
    with pytest.raises(DataError):
        next(reader)


BAD_SIZES = {
    "a word": b"many bytes!\0",
    "below zero in octal": b"-0000001000\0",
    "below zero in base 256": b"\xff" * 12,
    "more than a file can have": b"\x80" + b"\x7f" * 11,
}


@pytest.mark.parametrize("kind", [b"0", b"1", b"5", b"L", b"x"])
@pytest.mark.parametrize("size", BAD_SIZES.values(), ids=BAD_SIZES.keys())
def test_an_impossible_size_is_an_error_for_every_kind_of_member(size: bytes, kind: bytes) -> None:
    data = tar_header(b"a", size=size, kind=kind) + padded(b"x") + END
    assert fault_in(data) == f"a.tar: byte 0: a size of {size!r} in a tar header"


@pytest.mark.parametrize("size", ["many", "-512", "1e3", "", "9" * 40])
def test_an_impossible_size_in_a_pax_record_is_an_error(size: str) -> None:
    info = tar_member("a", 1)
    info.pax_headers = {"size": size}
    data = info.tobuf(tarfile.PAX_FORMAT) + padded(b"x") + END
    assert fault_in(data) == f"a.tar: byte 1,024: a size of {size!r} in a pax record"


PAX_DAMAGE = {
    "a length that is no number": b"xx path=a\n",
    "a length beyond the record": b"99 path=a\n",
    "a length that ends in itself": b"2 path=a\n",
    "a length without an end": b"123456",
}


@pytest.mark.parametrize("body", PAX_DAMAGE.values(), ids=PAX_DAMAGE.keys())
def test_a_damaged_pax_record_is_an_error(body: bytes) -> None:
    data = tar_header(b"pax", size=b"%011o\0" % len(body), kind=b"x") + padded(body) + tar({"a": b"x"})
    assert fault_in(data) == f"a.tar: a damaged pax record: {body!r}"


def test_a_name_record_of_more_than_a_mebibyte_is_refused_unread() -> None:
    head = tar_header(b"././@LongLink", size=b"%011o\0" % (2**20 + 1), kind=b"L")
    with pytest.raises(DataError, match="a name record of 1,048,577 bytes at byte 512"):
        list(iterate_members(Sparse({0: head}).read_at, 0, 2**30, "a.tar"))


def test_a_sparse_member_of_gnu_is_refused() -> None:
    data = tar({"a": b"x"})[:-1024] + tar_header(b"holes", kind=b"S", magic=b"ustar  \0") + END
    assert fault_in(data) == "a.tar: byte 1,024: a GNU sparse member; write the archive without --sparse"


def test_a_sparse_member_of_pax_is_told_by_kind() -> None:
    info = tar_member("GNUSparseFile.0/holes", 1)
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "holes"}
    data = tar_of((info, b"x"), (tar_member("after", 1), b"y"), tar_format="pax")
    assert [(member.name, member.kind) for member in members_of(data)] == [
        ("GNUSparseFile.0/holes", "sparse file"),
        ("after", "file"),
    ]


def test_a_tar_inside_a_tar_is_read_where_it_lies() -> None:
    classes = {"n01": {"a.JPEG": b"1" * 600, "b.JPEG": b"22"}, "n02": {"c.JPEG": b"333"}, "n03": {}}
    data = class_tars(classes)
    found = {
        outer.name.removesuffix(".tar"): {
            inner.name: data[inner.offset :][: inner.num_bytes]
            for inner in iterate_members(reader_of(data), outer.offset, outer.num_bytes, outer.name)
        }
        for outer in members_of(data)
    }
    assert found == classes


def test_a_nested_tar_that_is_cut_never_reads_on_into_its_neighbour() -> None:
    inner = tar({"a.JPEG": b"1" * 600, "b.JPEG": b"22"})
    for length in range(0, len(inner) - 1024 + 512, 512):
        data = tar({"n01.tar": inner[:length], "n02.tar": inner})
        first, _ = members_of(data)
        with pytest.raises(DataError, match=r"n01\.tar: cut short"):
            list(iterate_members(reader_of(data), first.offset, first.num_bytes, "n01.tar"))


def test_a_second_tar_behind_the_first_is_not_passed_over() -> None:
    with pytest.raises(DataError, match=r"the tar ends at byte 512, but what follows is not empty"):
        members_of(tar({"a": b""}) + tar({"b": b""}))


def test_a_header_that_zeros_have_overwritten_is_not_taken_for_the_end() -> None:
    data = bytearray(tar({"a": b"1", "b": b"2"}))
    data[1024:1536] = bytes(512)
    with pytest.raises(DataError, match="ends at byte 1,024, but what follows is not empty"):
        members_of(bytes(data))


def test_positions_in_an_error_count_from_the_nested_tars_own_start() -> None:
    data = tar({"n01.tar": tar_header(b"a", kind=b"S") + END})
    (outer,) = members_of(data)
    with pytest.raises(DataError, match=r"n01\.tar: byte 0: a GNU sparse member"):
        list(iterate_members(reader_of(data), outer.offset, outer.num_bytes, "n01.tar"))


def test_only_headers_and_name_records_are_read() -> None:
    asked: list[tuple[int, int]] = []
    data = tar({"a": bytes(5000), "b": bytes(5000)})

    def read_at(offset: int, num_bytes: int) -> bytes:
        asked.append((offset, num_bytes))
        return data[offset : offset + num_bytes]

    list(iterate_members(read_at, 0, len(data), "a.tar"))
    assert asked == [(0, 512), (5632, 512), (11264, 512), (11264, len(data) - 11264)]


@pytest.mark.parametrize("tar_format", FORMATS)
def test_a_tar_is_known_by_its_first_block(tar_format: TarFormat) -> None:
    assert is_tar(tar({"ä" if tar_format != "ustar" else "a": b"x"}, tar_format)[:512])
    assert is_tar(tar({})[:512])


@pytest.mark.parametrize("head", [b"", bytes(511), b"\x1f\x8b" + bytes(510), b"PK\3\4" + b"x" * 508, b"x" * 512])
def test_other_files_are_no_tar(head: bytes) -> None:
    assert not is_tar(head)
