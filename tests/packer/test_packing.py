"""Packing on workers: the items' order, the same bytes for any number of workers, and every item accounted for."""

from __future__ import annotations

import io
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from imagenet_ops.domain.recordio import MAGIC, ImageRecord, iterate_records, unpack_image
from imagenet_ops.errors import ChecksumMismatch, ProcessFailed, StorageError
from imagenet_ops.packer.items import Batch, Packed, PackItem, Skipped
from imagenet_ops.packer.messages import Setup
from imagenet_ops.packer.packing import Limits, pack_in_order
from imagenet_ops.packer.readers import FolderReader, StoreReader
from imagenet_ops.packer.shared_memory import SLOT_BYTES
from imagenet_ops.packer.worker_process import close_idle_workers
from tests.packer.codecs import ObedientCodec

USUAL, QUICK = Limits(), Limits(max_seconds=0.6)


def write_images(folder: Path, images: list[bytes]) -> list[PackItem]:
    folder.mkdir(exist_ok=True)
    for number, image in enumerate(images):
        (folder / f"{number}").write_bytes(image)
    return [PackItem(number, (number % 7,), f"image {number}", f"{number}") for number in range(len(images))]


def pack(folder: Path, items: list[PackItem], num_workers: int = 2, limits: Limits = USUAL) -> list[Batch]:
    """The batches, with a copy of their data."""
    setup = Setup(FolderReader(folder), ObedientCodec())
    return [
        batch._replace(data=memoryview(bytes(batch.data))) for batch in pack_in_order(items, setup, num_workers, limits)
    ]


def items_of(batches: list[Batch]) -> list[int]:
    return [item.record_id for batch in batches for item in batch.items]


def reasons_of(batches: list[Batch]) -> dict[int, str]:
    return {
        item.record_id: outcome.reason
        for batch in batches
        for item, outcome in zip(batch.items, batch.outcomes, strict=True)
        if isinstance(outcome, Skipped)
    }


def records_of(batches: list[Batch]) -> list[ImageRecord]:
    stream = io.BytesIO(b"".join(batch.data for batch in batches))
    return [unpack_image(payload, "packed") for _, payload in iterate_records(stream.read, "packed")]


def random_images(count: int) -> list[bytes]:
    chance = random.Random(5)
    images = [chance.randbytes(chance.choice([0, 1, 50, 20_000, 300_000])) for _ in range(count)]
    images[3] = b"\n#\xd7\xce" * 3  # RecordIO's magic
    images[5] = b"skip"
    return images


@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_every_item_comes_back_once_and_in_order(tmp_path: Path, num_workers: int) -> None:
    images = random_images(150)
    batches = pack(tmp_path, write_images(tmp_path, images), num_workers)
    assert items_of(batches) == list(range(150))
    assert reasons_of(batches) == {5: "told to skip"}
    expected = [ImageRecord(n, (float(n % 7),), image) for n, image in enumerate(images) if n != 5]
    assert records_of(batches) == expected


def test_the_place_of_a_record_in_its_batch_is_told(tmp_path: Path) -> None:
    images = random_images(40)
    for batch in pack(tmp_path, write_images(tmp_path, images)):
        end = 0
        for item, outcome in zip(batch.items, batch.outcomes, strict=True):
            if isinstance(outcome, Packed):
                assert outcome.start == end
                end = outcome.stop
                stream = io.BytesIO(batch.data[outcome.start : outcome.stop])
                [(_, payload)] = iterate_records(stream.read, item.name)
                assert unpack_image(payload, item.name).image == images[item.record_id]
                assert outcome.num_source_bytes == outcome.num_image_bytes == len(images[item.record_id])
        assert end == len(batch.data)


def test_an_image_larger_than_a_slot_is_packed_like_any_other(tmp_path: Path) -> None:
    images = [b"small", bytes(SLOT_BYTES + 5), b"small", MAGIC * (SLOT_BYTES // 4), bytes(SLOT_BYTES - 32), b"small"]
    batches = pack(tmp_path, write_images(tmp_path, images), limits=Limits())
    assert [record.image for record in records_of(batches)] == images


def test_nothing_to_pack_is_no_batch(tmp_path: Path) -> None:
    assert pack(tmp_path, []) == []


def test_several_labels_and_large_ids_reach_the_record(tmp_path: Path) -> None:
    items = [item._replace(record_id=2**64 - 1, labels=(1.0, 2.5)) for item in write_images(tmp_path, [b"image"])]
    assert records_of(pack(tmp_path, items)) == [ImageRecord(2**64 - 1, (1.0, 2.5), b"image")]


FAULTS = {
    "crash": ("decoder was killed by SIGSEGV", USUAL),
    "hang": ("takes longer than 0.6 s", QUICK),
    "hog": ("needs more than 209,715,200 bytes of memory", Limits(max_resident_bytes=200 * 2**20)),
}


@pytest.mark.parametrize(("kind", "reason", "limits"), [(kind, *fault) for kind, fault in FAULTS.items()], ids=FAULTS)
@pytest.mark.parametrize("place", [0, 33, 69])
def test_an_image_that_ends_its_worker_twice_is_skipped_and_no_other(
    tmp_path: Path, kind: str, reason: str, limits: Limits, place: int
) -> None:
    images = [b"image %d" % number for number in range(70)]
    images[place] = kind.encode()
    batches = pack(tmp_path, write_images(tmp_path, images), limits=limits)
    assert items_of(batches) == list(range(70))
    assert reasons_of(batches) == {place: reason}
    assert [record.image for record in records_of(batches)] == [image for image in images if image != images[place]]


def test_many_images_that_end_their_worker_are_each_skipped(tmp_path: Path) -> None:
    images = [b"crash" if number % 9 == 0 else b"image" for number in range(40)]
    batches = pack(tmp_path, write_images(tmp_path, images))
    assert set(reasons_of(batches)) == {0, 9, 18, 27, 36}
    assert len(records_of(batches)) == 35


def test_an_image_that_ends_its_worker_only_once_is_packed(tmp_path: Path) -> None:
    images = [b"image"] * 10
    images[4] = b"once crash " + os.fsencode(tmp_path / "crashed")
    batches = pack(tmp_path, write_images(tmp_path, images))
    assert reasons_of(batches) == {}
    assert len(records_of(batches)) == 10


def test_a_worker_killed_from_outside_ends_the_packing_and_names_the_image(tmp_path: Path) -> None:
    images = [b"image"] * 50
    images[41] = b"killed"
    start = time.monotonic()
    with pytest.raises(ProcessFailed, match=r"packing worker \d+ was killed by SIGKILL at image 41; run again"):
        pack(tmp_path, write_images(tmp_path, images))
    assert time.monotonic() - start < 10


def test_an_unforeseen_error_of_the_codec_ends_the_packing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="told to raise"):
        pack(tmp_path, write_images(tmp_path, [b"image", b"raise"]))


def test_a_file_that_is_not_there_is_skipped(tmp_path: Path) -> None:
    items = write_images(tmp_path, [b"image"] * 4)
    (tmp_path / "1").unlink()
    (tmp_path / "2").unlink()
    (tmp_path / "2").mkdir()
    batches = pack(tmp_path, items)
    assert reasons_of(batches) == {
        1: "file can't be read: No such file or directory",
        2: "file can't be read: Is a directory",
    }
    assert len(records_of(batches)) == 2


def test_a_file_that_does_not_answer_ends_the_packing(tmp_path: Path) -> None:
    """A named pipe without a writer: reading it waits for ever, as a dead network disk does."""
    items = write_images(tmp_path, [b"image"] * 3)
    (tmp_path / "1").unlink()
    os.mkfifo(tmp_path / "1")
    with pytest.raises(StorageError, match=r"nothing could be read for \d+ s"):
        pack(tmp_path, items, limits=Limits(max_read_seconds=1.0))


def test_a_range_behind_the_end_of_its_object_is_named(tmp_path: Path) -> None:
    (tmp_path / "archive.tar").write_bytes(b"0123456789")
    items = [PackItem(0, (0.0,), "n01/a.JPEG", "archive.tar", 8, 5)]
    setup = Setup(StoreReader(tmp_path.as_uri()), ObedientCodec())
    with pytest.raises(ChecksumMismatch, match=r"archive.tar: 5 bytes expected at 8 for n01/a.JPEG, 2 found"):
        list(pack_in_order(items, setup, 1))


def children() -> set[int]:
    """Of this process, once it has no idle worker any more."""
    close_idle_workers()
    return children_now()


def children_now() -> set[int]:
    task = Path(f"/proc/self/task/{os.getpid()}/children")
    return {int(pid) for pid in task.read_text().split()}


def test_no_worker_is_left_when_the_caller_gives_up(tmp_path: Path) -> None:
    before = children()
    items = write_images(tmp_path, [b"slow"] * 200)
    setup = Setup(FolderReader(tmp_path), ObedientCodec())
    with pytest.raises(OSError, match="disk full"), closing(pack_in_order(items, setup, 2)) as batches:
        next(batches)
        assert len(children_now() - before) == 2
        raise OSError("disk full")
    assert children() == before


def test_a_stopped_worker_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    items = write_images(tmp_path, [b"slow"] * 100)
    setup = Setup(FolderReader(tmp_path), ObedientCodec())
    before = children()

    def stop_one(batches: Iterator[Batch]) -> Iterator[Batch]:
        for number, batch in enumerate(batches):
            if number == 0:
                os.kill(min(children_now() - before), signal.SIGSTOP)
            yield batch._replace(data=memoryview(bytes(batch.data)))

    batches = list(stop_one(pack_in_order(items, setup, 2, Limits(max_seconds=2))))
    assert items_of(batches) == list(range(100))
    assert reasons_of(batches) == {}
    assert len(records_of(batches)) == 100


def test_workers_are_used_again_for_the_next_packing(tmp_path: Path) -> None:
    items = write_images(tmp_path, [b"image"] * 100)
    close_idle_workers()
    first = pack(tmp_path, items)
    workers = children_now()
    for _ in range(5):
        assert pack(tmp_path, items) == first
    assert children_now() == workers


def test_a_worker_that_ended_while_idle_is_not_used_again(tmp_path: Path) -> None:
    items = write_images(tmp_path, [b"image"] * 100)
    before = children()
    first = pack(tmp_path, items)
    for pid in children_now() - before:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert pack(tmp_path, items) == first
