"""Records from the chunks as batches: this worker's part, decoded and cropped by threads ahead of the network."""

from __future__ import annotations

import io
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from imagenet_ops.adapters.object_store import ObjectStore
from imagenet_ops.domain.recordio import ImageRecord, decode_image
from imagenet_ops.domain.worker_part import part_bounds
from imagenet_ops.errors import DataError
from imagenet_ops.manifests import TrainerChunk

Pixels = NDArray[np.uint8]
_BATCHES_AHEAD = 4
_CROP_TRIES = 10
cv2.setNumThreads(1)  # the threads here are the parallelism


class Batch(NamedTuple):
    """Images of shape (batch, 3, edge, edge), red first, normalised; the first `num_valid` count, the rest repeat."""

    images: NDArray[np.float32]
    labels: NDArray[np.float32]
    num_valid: int


@dataclass(frozen=True)
class Place:
    """Where a record lies."""

    key: str
    offset: int
    num_bytes: int


class RecordPart:
    """The records of one part of a split, by position; only the chunks that hold them are touched."""

    def __init__(self, store: ObjectStore, chunks: Sequence[TrainerChunk], part_index: int, num_parts: int) -> None:
        self._store = store
        start, stop = part_bounds(sum(chunk.num_records for chunk in chunks), part_index, num_parts)
        self._places: list[Place] = []
        first = 0
        for chunk in chunks:
            low, high = max(start - first, 0), min(stop - first, chunk.num_records)
            if low < high:
                self._places += _read_places(store, chunk)[low:high]
            first += chunk.num_records

    def __len__(self) -> int:
        return len(self._places)

    def read(self, position: int) -> ImageRecord:
        place = self._places[position]
        stream = io.BytesIO(self._store.get_range(place.key, place.offset, place.num_bytes))
        return decode_image(stream.read, f"{place.key}: record at byte {place.offset:,}")


class Augmentation(NamedTuple):
    """How an image becomes a square of `edge` pixels; means and deviations are of RGB, 0 to 255."""

    edge: int
    min_area: float
    mirror: bool
    validation_crop: float
    mean: Sequence[float]
    std: Sequence[float]


def training_batches(
    part: RecordPart, how: Augmentation, batch_size: int, num_steps: int, seed: Sequence[int], threads: int
) -> Iterator[Batch]:
    """Exactly `num_steps` full batches over the part in an order and with crops that `seed` decides.

    The records are used in turn; where the part is shorter than the steps, it starts over.
    """
    order = np.random.default_rng(seed).permutation(len(part))

    def load(number: int) -> tuple[NDArray[np.float32], float]:
        record = part.read(int(order[number % len(part)]))
        random = np.random.default_rng([*seed, number])
        return _normalise(_random_crop(_decode(record), how, random), how), record.labels[0]

    starts = range(0, num_steps * batch_size, batch_size)
    return _assemble(load, [(range(start, start + batch_size), batch_size) for start in starts], threads)


def validation_batches(part: RecordPart, how: Augmentation, batch_size: int, threads: int) -> Iterator[Batch]:
    """Every record of the part once; the last batch is filled up with repeats that do not count."""

    def load(number: int) -> tuple[NDArray[np.float32], float]:
        record = part.read(number % len(part))
        return _normalise(_centre_crop(_decode(record), how), how), record.labels[0]

    starts = range(0, len(part), batch_size)
    plan = [(range(start, start + batch_size), min(batch_size, len(part) - start)) for start in starts]
    return _assemble(load, plan, threads)


def _assemble(
    load: Callable[[int], tuple[NDArray[np.float32], float]], plan: list[tuple[range, int]], threads: int
) -> Iterator[Batch]:
    def join(loaded: list[Future[tuple[NDArray[np.float32], float]]], num_valid: int) -> Batch:
        images, labels = zip(*(future.result() for future in loaded), strict=True)
        return Batch(np.stack(images), np.array(labels, np.float32), num_valid)

    pool = ThreadPoolExecutor(threads)
    try:
        waiting: deque[tuple[list[Future[tuple[NDArray[np.float32], float]]], int]] = deque()
        for numbers, num_valid in plan:
            waiting.append(([pool.submit(load, number) for number in numbers], num_valid))
            if len(waiting) > _BATCHES_AHEAD:
                yield join(*waiting.popleft())
        while waiting:
            yield join(*waiting.popleft())
    finally:
        # After an unreadable record, or for a caller that wants no more, nothing is decoded in vain.
        pool.shutdown(cancel_futures=True)


def _read_places(store: ObjectStore, chunk: TrainerChunk) -> list[Place]:
    lines = store.get(chunk.idx_key).decode().splitlines()
    offsets = [int(line.split("\t")[1]) for line in lines]
    info = store.head(chunk.rec_key)
    if info is None:
        raise DataError(f"{chunk.rec_key}: no such object")
    if len(offsets) != chunk.num_records:
        raise DataError(f"{chunk.idx_key}: {chunk.num_records:,} records expected, {len(offsets):,} indexed")
    ends = [*offsets[1:], info.num_bytes]
    return [Place(chunk.rec_key, offset, end - offset) for offset, end in zip(offsets, ends, strict=True)]


def _decode(record: ImageRecord) -> Pixels:
    how = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    # OpenCV returns None for bytes that are no image, and raises an error of its own for none at all.
    pixels = cv2.imdecode(np.frombuffer(record.image, np.uint8), how) if record.image else None
    if pixels is None:
        raise DataError(f"record {record.record_id}: not a readable image")
    return np.asarray(pixels)


def _random_crop(pixels: Pixels, how: Augmentation, random: np.random.Generator) -> Pixels:
    """Inception's crop: a share of the area from `min_area` on, an aspect ratio of 3/4 to 4/3, mirrored at random."""
    height, width = pixels.shape[:2]
    crop = _centre_square(pixels, 1.0)
    for _ in range(_CROP_TRIES):
        area = random.uniform(how.min_area, 1.0) * height * width
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        columns, rows = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < columns <= width and 0 < rows <= height:
            left, top = random.integers(width - columns + 1), random.integers(height - rows + 1)
            crop = pixels[top : top + rows, left : left + columns]
            break
    crop = _resize(crop, how.edge)
    return crop[:, ::-1] if how.mirror and random.random() < 0.5 else crop


def _centre_crop(pixels: Pixels, how: Augmentation) -> Pixels:
    return _resize(_centre_square(pixels, how.validation_crop), how.edge)


def _centre_square(pixels: Pixels, share: float) -> Pixels:
    height, width = pixels.shape[:2]
    edge = max(1, round(share * min(height, width)))
    top, left = (height - edge) // 2, (width - edge) // 2
    return pixels[top : top + edge, left : left + edge]


def _resize(pixels: Pixels, edge: int) -> Pixels:
    if pixels.shape[:2] == (edge, edge):
        return pixels
    method = cv2.INTER_AREA if edge < min(pixels.shape[:2]) else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(pixels, (edge, edge), interpolation=method))


def _normalise(pixels: Pixels, how: Augmentation) -> NDArray[np.float32]:
    mean, std = np.array(how.mean, np.float32), np.array(how.std, np.float32)
    return np.ascontiguousarray(((pixels[:, :, ::-1] - mean) / std).transpose(2, 0, 1), np.float32)
