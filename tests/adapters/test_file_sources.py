from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from imagenet_ops.adapters.sources import open_source
from imagenet_ops.domain.tar_index import iterate_members
from imagenet_ops.errors import ConfigError, DataError, SourceUnavailable


def fetch(path: Path) -> bytes:
    with open_source(path.as_uri()).open() as blocks:
        return b"".join(blocks)


def identity_of(path: Path) -> str:
    return open_source(path.as_uri()).inspect().identity


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


FILES = {"n02/b.JPEG": b"b" * 700, "n01/ä b.JPEG": b"ab", "n01/empty": b"", "n10/" + "l" * 200: b"x", "top.txt": b"t"}


@pytest.mark.parametrize("num_bytes", [0, 1, 2**20, 2**20 + 1, 3_000_000])
def test_a_file_is_fetched_as_it_is(tmp_path: Path, num_bytes: int) -> None:
    path = tmp_path / "archive ä%20.tar"
    path.write_bytes(b"z" * num_bytes)
    assert fetch(path) == b"z" * num_bytes
    assert open_source(path.as_uri()).inspect().num_bytes == num_bytes


def test_a_file_has_another_identity_when_it_was_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(b"x")
    os.utime(path, ns=(1, 1))
    before = identity_of(path)
    assert identity_of(path) == before == "1:1"
    os.utime(path, ns=(1, 2))
    assert identity_of(path) != before


@pytest.mark.parametrize("url", ["ftp://host/a.tar", "a.tar", "", "/data/a.tar", "s3://bucket/a.tar"])
def test_a_url_of_another_scheme_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_source(url)
    assert str(caught.value) == f"source {url!r}: expected a file://, http:// or https:// URL"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    url = (tmp_path / "a.tar").as_uri()
    with pytest.raises(ConfigError) as caught:
        open_source(url)
    assert str(caught.value) == f"source {url}: no such file or folder"


def test_a_folder_becomes_a_tar_that_python_and_the_index_read_alike(tmp_path: Path) -> None:
    data = fetch(write(tmp_path, FILES))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        pythons = [(info.name, info.offset_data, info.size) for info in archive]
    members = iterate_members(lambda offset, num_bytes: data[offset : offset + num_bytes], 0, len(data), "a.tar")
    assert [(member.name, member.offset, member.num_bytes) for member in members] == pythons
    assert {name: data[offset:][:size] for name, offset, size in pythons} == FILES
    assert [name for name, _, _ in pythons] == sorted(FILES)


def test_the_same_files_give_the_same_tar_whatever_their_order_times_and_rights(tmp_path: Path) -> None:
    one = write(tmp_path / "one", FILES)
    other = write(tmp_path / "other", dict(reversed(FILES.items())))
    for path in other.rglob("*.JPEG"):
        path.chmod(0o600)
        os.utime(path, (0, 0))
    assert fetch(one) == fetch(one) == fetch(other)


def test_a_folder_has_another_identity_when_a_file_comes_goes_changes_or_moves(tmp_path: Path) -> None:
    identities = [identity_of(write(tmp_path, FILES))]
    (tmp_path / "n01" / "new").write_bytes(b"")
    identities.append(identity_of(tmp_path))
    (tmp_path / "n01" / "new").rename(tmp_path / "n02" / "new")
    identities.append(identity_of(tmp_path))
    (tmp_path / "n02" / "new").write_bytes(b"longer")
    identities.append(identity_of(tmp_path))
    (tmp_path / "n02" / "new").unlink()
    assert len({*identities}) == 4
    assert identity_of(tmp_path) == identities[0]


def test_an_empty_folder_is_an_empty_tar(tmp_path: Path) -> None:
    assert fetch(tmp_path) == bytes(1024)


def test_a_name_that_is_not_utf_8_keeps_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "n01").mkdir()
    (tmp_path / "n01" / os.fsdecode(b"caf\xe9.JPEG")).write_bytes(b"x")
    assert len(identity_of(tmp_path)) == 64
    data = fetch(tmp_path)
    members = iterate_members(lambda offset, num_bytes: data[offset : offset + num_bytes], 0, len(data), "a.tar")
    assert [member.name for member in members] == ["n01/caf\\xe9.JPEG"]


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/a.JPEG": b"a", "photos/n01/b.JPEG": b"b"})
    (tmp_path / "photos" / "n02").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "photos" / "n01" / "c.JPEG").symlink_to(tmp_path / "elsewhere" / "a.JPEG")
    with tarfile.open(fileobj=io.BytesIO(fetch(tmp_path / "photos"))) as archive:
        assert {info.name: info.isfile() for info in archive} == {
            "n01/b.JPEG": True,
            "n01/c.JPEG": True,
            "n02/a.JPEG": True,
        }


@pytest.mark.parametrize("target", [".", ".."])
def test_a_link_to_a_folder_above_is_refused(tmp_path: Path, target: str) -> None:
    write(tmp_path, {"n01/a.JPEG": b"a"})
    (tmp_path / "n01" / "loop").symlink_to(target)
    for ask in (fetch, identity_of):
        with pytest.raises(DataError) as caught:
            ask(tmp_path)
        assert str(caught.value).endswith("loop: a link to a folder above it")


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    with pytest.raises(DataError) as caught:
        fetch(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'gone'}: neither a file nor a folder, or a link to nothing"


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="neither a file nor a folder"):
        fetch(tmp_path)


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(bytes(3 * 2**20))
    with open_source(tmp_path.as_uri()).open() as blocks:
        next(blocks)
        os.truncate(path, 2**20)
        with pytest.raises(SourceUnavailable) as caught:
            list(blocks)
    assert str(caught.value) == f"{path}: became 2,097,152 bytes shorter while it was read"


def test_a_file_that_grows_while_it_is_read_keeps_the_tar_whole(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"x" * 700)
    with open_source(tmp_path.as_uri()).open() as blocks:
        data = next(blocks)
        path.write_bytes(b"x" * 9000)
        data += b"".join(blocks)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert [(info.name, info.size) for info in archive] == [("big", 700)]
