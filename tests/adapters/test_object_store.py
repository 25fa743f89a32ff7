"""One contract, over the real store and its fake; then what only a folder has."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.adapters.object_store import ObjectStore, open_store
from imagenet_ops.errors import ConfigError, NoSpace, ObjectNotFound, StorageError
from tests.fakes import MemoryStore

BAD_KEYS = ["", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/..", ".", "./a", "a/./b", "a\0b"]


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return FileStore(tmp_path / "store") if request.param == "file" else MemoryStore()


@pytest.fixture
def file_store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store")


def keys_of(store: ObjectStore, prefix: str = "") -> list[str]:
    return [info.key for info in store.list(prefix)]


def files_under(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


class TestContract:
    """Named as a sentence with `a store` in front."""

    def test_gives_back_what_was_put(self, store: ObjectStore) -> None:
        store.put("demo/untar/data/ä b.bin", b"xyz")
        assert store.get("demo/untar/data/ä b.bin") == b"xyz"

    def test_replaces_an_object(self, store: ObjectStore) -> None:
        store.put("a", b"long old content")
        store.put("a", b"new")
        assert store.get("a") == b"new"

    def test_keeps_an_empty_object(self, store: ObjectStore) -> None:
        store.put("a", b"")
        info = store.head("a")
        assert info is not None
        assert (store.get("a"), info.num_bytes) == (b"", 0)

    @pytest.mark.parametrize(
        ("offset", "num_bytes", "expected"),
        [
            (0, 10, b"0123456789"),
            (3, 4, b"3456"),
            (8, 100, b"89"),
            (10, 5, b""),
            (50, 5, b""),
            (4, 0, b""),
        ],
    )
    def test_gives_a_range_that_is_shorter_only_at_the_end(
        self, store: ObjectStore, offset: int, num_bytes: int, expected: bytes
    ) -> None:
        store.put("a", b"0123456789")
        assert store.get_range("a", offset, num_bytes) == expected

    def test_knows_key_size_and_time_of_an_object(self, store: ObjectStore) -> None:
        store.put("a/b", b"xyz")
        info = store.head("a/b")
        assert info is not None
        assert (info.key, info.num_bytes) == ("a/b", 3)
        assert info.modified_seconds > 0

    def test_has_no_head_for_a_missing_object_or_a_folder(self, store: ObjectStore) -> None:
        store.put("a/b", b"xyz")
        assert [store.head(key) for key in ("x", "a", "a/x", "a/b/c")] == [None] * 4

    @pytest.mark.parametrize("key", ["x", "a", "a/x", "a/b/c"])
    def test_raises_object_not_found_for_a_missing_object_or_a_folder(self, store: ObjectStore, key: str) -> None:
        store.put("a/b", b"xyz")
        calls: list[Callable[[], object]] = [lambda: store.get(key), lambda: store.get_range(key, 0, 1)]
        for call in calls:
            with pytest.raises(ObjectNotFound, match=rf"^{re.escape(key)}: no such object \("):
                call()

    @pytest.mark.parametrize("key", ["x", "a", "a/x", "a/b/c"])
    def test_deletes_a_missing_object_without_a_word(self, store: ObjectStore, key: str) -> None:
        store.put("a/b", b"xyz")
        store.delete(key)
        assert keys_of(store) == ["a/b"]

    def test_deletes_an_object(self, store: ObjectStore) -> None:
        store.put("a/b", b"xyz")
        store.put("a/c", b"xyz")
        store.delete("a/b")
        assert keys_of(store) == ["a/c"]

    def test_puts_only_where_there_is_none(self, store: ObjectStore) -> None:
        assert store.put_if_absent("a/b", b"first") is True
        assert store.put_if_absent("a/b", b"second") is False
        assert store.get("a/b") == b"first"

    def test_lets_one_of_many_put_at_once(self, store: ObjectStore) -> None:
        for round_number in range(10):
            start = threading.Barrier(8)

            def race(number: int, key: str, start: threading.Barrier = start) -> bool:
                start.wait()
                return store.put_if_absent(key, b"%d" % number)

            key = f"race/{round_number}"
            with ThreadPoolExecutor(8) as pool:
                won = list(pool.map(race, range(8), [key] * 8))
            assert won.count(True) == 1
            assert store.get(key) == b"%d" % won.index(True)

    def test_lists_all_under_a_folder_sorted_by_key(self, store: ObjectStore) -> None:
        keys = ["d/part_10", "d/part_2", "d/sub/z", "d/sub.json", "d/B", "d/ä", "dd/other", "c", "d/sub/a"]
        for key in keys:
            store.put(key, b"x")
        assert keys_of(store, "d") == ["d/B", "d/part_10", "d/part_2", "d/sub.json", "d/sub/a", "d/sub/z", "d/ä"]
        assert keys_of(store, "d/sub") == ["d/sub/a", "d/sub/z"]
        assert keys_of(store) == sorted(keys)

    def test_lists_nothing_where_nothing_is(self, store: ObjectStore) -> None:
        assert keys_of(store) == keys_of(store, "no/such") == []

    def test_lists_sizes(self, store: ObjectStore) -> None:
        store.put("a/b", b"xyz")
        assert [(info.key, info.num_bytes) for info in store.list("a")] == [("a/b", 3)]

    def test_counts_and_hashes_what_a_writer_takes(self, store: ObjectStore) -> None:
        with store.open_writer("a") as writer:
            assert writer.sha256() == hashlib.sha256().hexdigest()
            for piece in (b"abc", b"", b"d" * 3_000_000):
                writer.write(piece)
        whole = b"abc" + b"d" * 3_000_000
        assert store.get("a") == whole
        assert (writer.num_bytes, writer.sha256()) == (len(whole), hashlib.sha256(whole).hexdigest())

    def test_shows_nothing_before_a_writer_has_ended(self, store: ObjectStore) -> None:
        with store.open_writer("a/b") as writer:
            writer.write(b"new")
            assert (store.head("a/b"), keys_of(store)) == (None, [])
        assert keys_of(store) == ["a/b"]

    def test_shows_the_old_object_before_a_writer_has_ended(self, store: ObjectStore) -> None:
        store.put("a", b"old")
        with store.open_writer("a") as writer:
            writer.write(b"new")
            assert store.get("a") == b"old"

    def test_keeps_nothing_of_a_writer_that_raises(self, store: ObjectStore) -> None:
        with pytest.raises(RuntimeError, match="in the middle"), store.open_writer("a/b") as writer:
            writer.write(b"half")
            raise RuntimeError("in the middle")
        assert (store.head("a/b"), keys_of(store)) == (None, [])

    def test_keeps_the_old_object_when_a_writer_raises(self, store: ObjectStore) -> None:
        store.put("a", b"old")
        with pytest.raises(RuntimeError), store.open_writer("a") as writer:
            writer.write(b"half")
            raise RuntimeError
        assert store.get("a") == b"old"

    def test_takes_the_last_of_two_writers_at_once_whole(self, store: ObjectStore) -> None:
        with store.open_writer("a") as first:
            first.write(b"first, and longer")
            with store.open_writer("a") as second:
                second.write(b"second")
            assert store.get("a") == b"second"
        assert store.get("a") == b"first, and longer"
        assert keys_of(store) == ["a"]

    def test_never_shows_a_mixture_to_a_reader(self, store: ObjectStore) -> None:
        contents = [bytes([number]) * 200_000 for number in range(4)]
        store.put("a", contents[0])
        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(lambda data: [store.put("a", data) for _ in range(8)], data) for data in contents]
            while not all(writer.done() for writer in writers):
                assert store.get("a") in contents

    @pytest.mark.parametrize("key", BAD_KEYS)
    def test_refuses_a_key_that_could_lead_outside(self, store: ObjectStore, key: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.get(key),
            lambda: store.get_range(key, 0, 1),
            lambda: store.head(key),
            lambda: store.put(key, b"x"),
            lambda: store.put_if_absent(key, b"x"),
            lambda: store.open_writer(key).__enter__(),
            lambda: store.delete(key),
            lambda: store.local_path(key),
        ]
        if key:  # the empty prefix lists all
            calls.append(lambda: list(store.list(key)))
        for call in calls:
            with pytest.raises(StorageError) as caught:
                call()
            assert str(caught.value) == f"key {key!r}: not a relative key without '.' and '..'"

    def test_takes_dots_inside_a_name(self, store: ObjectStore) -> None:
        for key in (".hidden", "a/..b", "a/b..", "a/...", "a.b/c.d"):
            store.put(key, b"x")
        assert keys_of(store) == [".hidden", "a.b/c.d", "a/...", "a/..b", "a/b.."]


def test_a_file_store_is_opened_by_its_url(tmp_path: Path) -> None:
    folder = tmp_path / "a b%c"
    store = open_store(folder.as_uri())
    store.put("x", b"y")
    assert (folder / "x").read_bytes() == b"y"
    assert open_store(store.url).get("x") == b"y"


@pytest.mark.parametrize("url", ["file:///tmp/a#b", "file:///tmp/a?b", "file:///tmp/a#", "file:///tmp/a?"])
def test_a_url_that_would_lose_its_end_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="written %3F and %23"):
        open_store(url)


@pytest.mark.parametrize("url", ["s3://bucket", "/folder", "file://host/folder", "file:relative", "memory://1", ""])
def test_a_store_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert str(caught.value) == f"store {url!r}: expected file:///an/absolute/folder"


def test_an_object_of_a_file_store_is_a_file(file_store: FileStore) -> None:
    file_store.put("a/b", b"xyz")
    assert file_store.local_path("a/b") == file_store.root / "a" / "b"
    assert files_under(file_store.root) == ["a/b"]


def test_a_file_store_makes_its_folder_at_the_first_write_only(file_store: FileStore) -> None:
    assert (file_store.head("a"), keys_of(file_store)) == (None, [])
    assert not file_store.root.exists()


ODD_NAMES = ["plain", "with*star", "with?mark", "with[brackets]", "ä", "a.b.c"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_partial_file_stays_behind(file_store: FileStore, name: str) -> None:
    file_store.put(name, b"x")
    file_store.put_if_absent(name, b"y")
    with pytest.raises(RuntimeError), file_store.open_writer(name):
        raise RuntimeError
    assert files_under(file_store.root) == [name]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_abandoned_partial_file_is_removed_and_its_neighbours_stay(file_store: FileStore, name: str) -> None:
    file_store.root.mkdir()
    neighbour = ".withXstar.0123456789ab.partial"
    for partial in (f".{name}.0123456789ab.partial", neighbour):
        (file_store.root / partial).write_bytes(b"half")
    file_store.put(name, b"x")
    assert files_under(file_store.root) == sorted([neighbour, name])


WRITE_AND_HANG = """
import pathlib, sys, time
from imagenet_ops.adapters.file_store import FileStore
with FileStore(pathlib.Path(sys.argv[1])).open_writer(sys.argv[2]) as writer:
    for _ in range(3):
        writer.write(bytes(2_000_000))
    print("half way", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def hanging_writer(file_store: FileStore) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WRITE_AND_HANG, str(file_store.root), "a/big.rec"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half way\n"
        yield process
        process.kill()


def test_a_killed_writer_leaves_nothing_that_is_seen_and_the_next_one_clears_up(
    file_store: FileStore, hanging_writer: subprocess.Popen[str]
) -> None:
    hanging_writer.send_signal(signal.SIGKILL)
    hanging_writer.wait()
    assert (file_store.head("a/big.rec"), keys_of(file_store)) == (None, [])
    (partial,) = files_under(file_store.root)
    assert re.fullmatch(r"a/\.big\.rec\.[0-9a-f]{12}\.partial", partial)
    file_store.put("a/other", b"x")
    assert files_under(file_store.root) == [partial, "a/other"]
    file_store.put("a/big.rec", b"whole")
    assert files_under(file_store.root) == ["a/big.rec", "a/other"]


def test_a_writer_that_lives_keeps_its_partial_file(
    file_store: FileStore, hanging_writer: subprocess.Popen[str]
) -> None:
    file_store.put("a/big.rec", b"whole")
    assert file_store.put_if_absent("a/big.rec", b"again") is False
    assert len(files_under(file_store.root)) == 2
    assert hanging_writer.poll() is None
    assert keys_of(file_store) == ["a/big.rec"]


FILL = """
import pathlib, sys
from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.errors import NoSpace
store = FileStore(pathlib.Path(sys.argv[1]))
store.put("a/small", b"kept")
for write in (store.put, store.put_if_absent):
    for num_bytes in (1_046_000, 5_000_000):  # one that only the last flush writes out, and one that fails before
        try:
            write("a/big", bytes(num_bytes))
        except NoSpace as error:
            print(error)
print([info.key for info in store.list("")], store.get("a/small"))
print(sorted(path.name for path in store.root.rglob("*")))
store.put("a/next", b"there is room again")
"""


def in_a_mount_namespace(*command: str) -> subprocess.CompletedProcess[str]:
    """Its mounts end with it: nothing has to be unmounted, whatever happens."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return subprocess.run(["unshare", "--mount", *rights, *command], capture_output=True, text=True, check=False)


def test_a_full_disk_is_told_as_such_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    mount = ("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path))
    if in_a_mount_namespace(*mount).returncode:
        pytest.skip("this machine lets nobody mount a small disk; the faked full disk below is tested all the same")
    script = f'{shlex.join(mount)} && exec "$@"'
    result = in_a_mount_namespace("sh", "-c", script, "sh", sys.executable, "-c", FILL, str(tmp_path))
    assert (result.stdout, result.stderr, result.returncode) == (
        "a/big: the store's disk is full\n" * 4 + "['a/small'] b'kept'\n['a', 'small']\n",
        "",
        0,
    )


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full_at_the_very_end_leaves_nothing_half_written(
    file_store: FileStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("imagenet_ops.adapters.file_store.os.fsync", fail)
    for write in (file_store.put, file_store.put_if_absent):
        with pytest.raises(NoSpace, match="a/b: the store's disk is full"):
            write("a/b", b"x")
    assert files_under(file_store.root) == []


def test_another_fault_of_the_disk_names_the_key_and_the_fault(file_store: FileStore) -> None:
    with pytest.raises(StorageError) as caught:
        file_store.put("n" * 300, b"x")
    assert not isinstance(caught.value, NoSpace | ObjectNotFound)
    assert str(caught.value).startswith(f"{'n' * 300}: File name too long (")


def test_two_processes_at_once_leave_one_whole_object(file_store: FileStore) -> None:
    script = (
        "import pathlib, sys; from imagenet_ops.adapters.file_store import FileStore; "
        "store = FileStore(pathlib.Path(sys.argv[1])); "
        "[store.put('a/b', sys.argv[2].encode() * 300_000) for _ in range(30)]"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(file_store.root), letter]) for letter in "xy"]
    deadline = time.monotonic() + 60
    while any(writer.poll() is None for writer in writers) and time.monotonic() < deadline:
        if file_store.head("a/b"):
            assert file_store.get("a/b") in (b"x" * 300_000, b"y" * 300_000)
    assert [writer.wait(10) for writer in writers] == [0, 0]
    assert files_under(file_store.root) == ["a/b"]
