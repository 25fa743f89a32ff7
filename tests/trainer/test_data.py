"""Records to batches: each one where it belongs, once, and with the right pixels."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from imagenet_ops.domain.recordio import ImageRecord
from imagenet_ops.errors import DataError
from imagenet_ops.manifests import TrainerChunk
from imagenet_ops.trainer.data import Augmentation, Batch, RecordPart, training_batches, validation_batches
from tests.fakes import MemoryStore
from tests.trainer.packed import pack_chunk, pack_numbered, picture, png

MEAN, STD = (100.0, 110.0, 120.0), (50.0, 60.0, 70.0)
PLAIN = Augmentation(edge=8, min_area=1.0, mirror=False, validation_crop=1.0, mean=(0, 0, 0), std=(1, 1, 1))
RANDOM = PLAIN._replace(min_area=0.2, mirror=True)
SEED = (7, 0, 0)


def part_of(sizes: list[int], part_index: int = 0, num_parts: int = 1, edge: int = 8) -> RecordPart:
    store = MemoryStore()
    return RecordPart(store, pack_numbered(store, sizes, edge), part_index, num_parts)


def ids(part: RecordPart) -> list[int]:
    return [part.read(position).record_id for position in range(len(part))]


def labels(batches: Iterator[Batch]) -> list[int]:
    """Of the images that count."""
    return [int(label) for batch in batches for label in batch.labels[: batch.num_valid]]


def digest(batches: Iterator[Batch]) -> str:
    found = hashlib.sha256()
    for batch in batches:
        found.update(batch.images.tobytes() + batch.labels.tobytes() + bytes([batch.num_valid]))
    return found.hexdigest()


def one_image(pixels: np.ndarray, how: Augmentation) -> np.ndarray:
    """What validation makes of a picture."""
    store = MemoryStore()
    part = RecordPart(store, [pack_chunk(store, "one", [ImageRecord(0, (0.0,), png(pixels))])], 0, 1)
    (batch,) = validation_batches(part, how, 1, 1)
    return batch.images[0]


@pytest.mark.parametrize("num_parts", range(1, 6))
@pytest.mark.parametrize("sizes", [[11], [3, 4, 5], [2, 0, 9], [0, 5], [6, 0], [1, 1, 1, 1, 1, 1, 1], [2, 1], [1], [0]])
def test_the_parts_hold_every_record_once_in_order(sizes: list[int], num_parts: int) -> None:
    store = MemoryStore()
    chunks = pack_numbered(store, sizes)
    parts = [RecordPart(store, chunks, index, num_parts) for index in range(num_parts)]
    assert [number for part in parts for number in ids(part)] == list(range(sum(sizes)))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_only_the_chunks_that_hold_a_part_are_touched() -> None:
    store = MemoryStore()
    chunks = pack_numbered(store, [4, 4, 4])
    for key in ("train_00001.rec", "train_00001.idx", "train_00002.rec", "train_00002.idx"):
        store.delete(key)
    assert ids(RecordPart(store, chunks, 0, 3)) == [0, 1, 2, 3]


def test_an_index_that_disagrees_with_the_manifest_is_told_with_both_counts() -> None:
    store = MemoryStore()
    (chunk,) = pack_numbered(store, [3])
    wrong = TrainerChunk(rec_key=chunk.rec_key, idx_key=chunk.idx_key, num_records=4)
    with pytest.raises(DataError, match=r"train_00000\.idx: 4 records expected, 3 indexed"):
        RecordPart(store, [wrong], 0, 1)


def test_a_chunk_that_is_gone_is_told_by_its_key() -> None:
    store = MemoryStore()
    chunks = pack_numbered(store, [3])
    store.delete("train_00000.rec")
    with pytest.raises(DataError, match=r"train_00000\.rec: no such object"):
        RecordPart(store, chunks, 0, 1)


def test_a_chunk_that_shrinks_while_it_is_read_is_told_by_its_key_and_place() -> None:
    store = MemoryStore()
    part = RecordPart(store, pack_numbered(store, [3]), 0, 1)
    store.objects["train_00000.rec"] = b""
    with pytest.raises(DataError, match=r"train_00000\.rec: record at byte \d+: no record where one is expected"):
        list(training_batches(part, PLAIN, 2, 2, SEED, 2))


@pytest.mark.parametrize(("batch_size", "num_steps"), [(4, 1), (4, 3), (3, 9), (20, 2), (1, 11)])
def test_training_gives_exactly_the_steps_asked_for_each_a_full_batch(batch_size: int, num_steps: int) -> None:
    batches = list(training_batches(part_of([4, 7]), RANDOM, batch_size, num_steps, SEED, 2))
    assert [batch.images.shape for batch in batches] == [(batch_size, 3, 8, 8)] * num_steps
    assert [batch.labels.shape for batch in batches] == [(batch_size,)] * num_steps
    assert [batch.num_valid for batch in batches] == [batch_size] * num_steps
    assert {(batch.images.dtype.name, batch.labels.dtype.name) for batch in batches} == {("float32", "float32")}


def test_an_epoch_uses_every_record_once_and_starts_over_where_the_part_is_short() -> None:
    found = labels(training_batches(part_of([4, 7]), PLAIN, 5, 5, SEED, 2))
    assert sorted(found[:11]) == list(range(11))
    assert found[11:22] == found[:11]
    assert found[22:] == found[:3]


def test_the_image_belongs_to_its_label() -> None:
    for batch in training_batches(part_of([3, 4]), PLAIN, 7, 1, SEED, 2):
        for image, label in zip(batch.images, batch.labels, strict=True):
            assert np.array_equal(image.transpose(1, 2, 0), picture(8, 8, int(label)))


def test_the_threads_change_no_byte() -> None:
    part = part_of([9, 8], edge=20)
    one = digest(training_batches(part, RANDOM, 4, 6, SEED, 1))
    assert digest(training_batches(part, RANDOM, 4, 6, SEED, 8)) == one
    assert digest(validation_batches(part, RANDOM, 4, 1)) == digest(validation_batches(part, RANDOM, 4, 8))


@pytest.mark.parametrize("other", [(8, 0, 0), (7, 1, 0), (7, 0, 1)])
def test_another_seed_epoch_or_worker_has_another_order(other: tuple[int, int, int]) -> None:
    part = part_of([30])
    mine, theirs = (labels(training_batches(part, PLAIN, 30, 1, seed, 2)) for seed in (SEED, other))
    assert mine != theirs and sorted(mine) == sorted(theirs)


def test_a_repeated_record_is_cropped_anew() -> None:
    first, second = training_batches(part_of([1], edge=20), RANDOM, 1, 2, SEED, 1)
    assert not np.array_equal(first.images, second.images)


def test_the_smallest_area_decides_how_small_a_crop_gets() -> None:
    """A ramp from 0 to 255: a crop's range of values is the share of the width that it has."""
    ramp = np.repeat(np.linspace(0, 255, 64).astype(np.uint8)[None, :, None], 64, axis=0).repeat(3, axis=2)
    store = MemoryStore()
    part = RecordPart(store, [pack_chunk(store, "one", [ImageRecord(0, (0.0,), png(ramp))])], 0, 1)

    def narrowest(min_area: float) -> float:
        how = PLAIN._replace(min_area=min_area)
        images = [batch.images[0] for batch in training_batches(part, how, 1, 200, SEED, 2)]
        return min(float(np.ptp(image)) for image in images) / 255

    # The narrowest crop of an area a is sqrt(a × 3/4) wide; shrinking to 8 columns loses about an eighth of the range.
    assert 0.7 * 0.19 < narrowest(0.05) < 0.4
    assert narrowest(0.8) > 0.7 * 0.77


def test_mirroring_turns_about_half_of_the_images_and_none_without_it() -> None:
    half = np.zeros((8, 8, 3), np.uint8)
    half[:, :4] = 200
    store = MemoryStore()
    part = RecordPart(store, [pack_chunk(store, "one", [ImageRecord(0, (0.0,), png(half))])], 0, 1)
    plain, mirrored = (
        [batch.images[0, 0, 0, 0] == 0 for batch in training_batches(part, how, 1, 200, SEED, 2)]
        for how in (PLAIN, PLAIN._replace(mirror=True))
    )
    assert sum(plain) == 0 and 70 < sum(mirrored) < 130


@pytest.mark.parametrize(("num_records", "batch_size"), [(7, 3), (6, 3), (2, 5), (1, 1)])
def test_validation_counts_each_record_once_and_no_repeat(num_records: int, batch_size: int) -> None:
    batches = list(validation_batches(part_of([num_records]), PLAIN, batch_size, 2))
    assert labels(iter(batches)) == list(range(num_records))
    assert {batch.images.shape for batch in batches} == {(batch_size, 3, 8, 8)}
    assert sum(batch.num_valid for batch in batches) == num_records


def test_a_part_without_records_validates_nothing() -> None:
    part = part_of([2], part_index=0, num_parts=3)
    assert len(part) == 0 and list(validation_batches(part, PLAIN, 4, 2)) == []


def test_images_are_normalised_channel_by_channel_red_first() -> None:
    pixels = np.empty((8, 8, 3), np.uint8)
    pixels[:, :] = (200, 50, 15)  # red, green, blue
    found = one_image(pixels, PLAIN._replace(mean=MEAN, std=STD))
    expected = [(200 - 100) / 50, (50 - 110) / 60, (15 - 120) / 70]
    assert np.allclose(found, np.array(expected, np.float32)[:, None, None], atol=1e-6)


def test_every_pixel_keeps_its_place() -> None:
    pixels = picture(8, 8, seed=3)
    found = one_image(pixels, PLAIN._replace(mean=MEAN, std=STD))
    expected = (pixels.astype(np.float64) - np.array(MEAN)) / np.array(STD)
    assert np.allclose(found, expected.transpose(2, 0, 1), atol=1e-5)


@pytest.mark.parametrize(
    ("width", "height", "rows", "columns"),
    [(20, 8, slice(0, 8), slice(6, 14)), (8, 13, slice(2, 10), slice(0, 8)), (8, 8, slice(0, 8), slice(0, 8))],
)
def test_validation_takes_the_middle_square(width: int, height: int, rows: slice, columns: slice) -> None:
    pixels = picture(width, height, seed=1)
    assert np.array_equal(one_image(pixels, PLAIN).transpose(1, 2, 0), pixels[rows, columns])


def test_the_validation_crop_is_a_share_of_the_short_edge() -> None:
    pixels = picture(24, 16, seed=1)
    found = one_image(pixels, PLAIN._replace(validation_crop=0.5))
    assert np.array_equal(found.transpose(1, 2, 0), pixels[4:12, 8:16])


@pytest.mark.parametrize("damaged", [b"", b"not an image", png(picture(8, 8))[:40]])
@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_record_that_is_no_image_is_told_by_its_id(damaged: bytes, split: str) -> None:
    store = MemoryStore()
    records = [ImageRecord(number, (0.0,), png(picture(8, 8, number))) for number in range(3)]
    part = RecordPart(store, [pack_chunk(store, "bad", [*records, ImageRecord(4711, (0.0,), damaged)])], 0, 1)
    batches = (
        training_batches(part, PLAIN, 2, 2, SEED, 2) if split == "train" else validation_batches(part, PLAIN, 2, 2)
    )
    with pytest.raises(DataError, match="record 4711: not a readable image"):
        list(batches)


class SlowStore(MemoryStore):
    """Counts its reads, each of which takes a moment."""

    num_reads = 0

    def get_range(self, key: str, offset: int, num_bytes: int) -> bytes:
        self.num_reads += 1
        time.sleep(0.02)
        return super().get_range(key, offset, num_bytes)


def test_the_threads_of_a_generator_that_is_left_early_end_and_read_no_further() -> None:
    store = SlowStore()
    part = RecordPart(store, pack_numbered(store, [200]), 0, 1)
    before = set(threading.enumerate())
    batches = training_batches(part, PLAIN, 40, 5, SEED, 2)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert set(threading.enumerate()) - before == set()
    assert store.num_reads < 60  # the first batch, and what two threads had under way; not all five batches ahead
