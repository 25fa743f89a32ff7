"""Packed records made in code, without the libraries that only the packing side has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from imagenet_ops.domain.recordio import ImageRecord, encode_record, pack_image
from imagenet_ops.manifests import TrainerChunk
from tests.fakes import MemoryStore


def picture(width: int, height: int, seed: int = 0) -> NDArray[np.uint8]:
    """Red, green, blue; smooth, and no two seeds alike."""
    corners = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return np.asarray(cv2.resize(corners, (width, height), interpolation=cv2.INTER_LINEAR))


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Loses nothing, so that what is read can be compared exactly."""
    return cv2.imencode(".png", pixels[:, :, ::-1])[1].tobytes()


def pack_chunk(store: MemoryStore, name: str, records: Sequence[ImageRecord]) -> TrainerChunk:
    file, index = b"", ""
    for record in records:
        index += f"{record.record_id}\t{len(file)}\n"
        file += encode_record(pack_image(record))
    store.put(f"{name}.rec", file)
    store.put(f"{name}.idx", index.encode())
    return TrainerChunk(rec_key=f"{name}.rec", idx_key=f"{name}.idx", num_records=len(records))


def pack_numbered(store: MemoryStore, sizes: Iterable[int], edge: int = 8) -> list[TrainerChunk]:
    """Chunks of so many square images; ids and labels count through all of them from 0."""
    chunks, first = [], 0
    for position, size in enumerate(sizes):
        records = [
            ImageRecord(number, (float(number),), png(picture(edge, edge, number)))
            for number in range(first, first + size)
        ]
        chunks.append(pack_chunk(store, f"train_{position:05d}", records))
        first += size
    return chunks
