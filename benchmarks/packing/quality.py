"""How close stored images are to the best that their size can show: the source, scaled down with Lanczos in floats.

Only images that were scaled down count. PSNR is over all three channels, SSIM over the luma with the paper's window
(Wang et al. 2004: Gaussian of 11 pixels and sigma 1.5, k1 = 0.01, k2 = 0.03).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.packing.corpora import Corpus
from imagenet_ops.domain.image_list import parse_list_line
from imagenet_ops.domain.recordio import iterate_records, unpack_image

_SHORT_EDGE = 480
_NUM_SAMPLED = 60
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Quality:
    """Means over `num_images` stored images."""

    psnr_db: float
    ssim: float
    num_images: int


def measure_quality(corpus: Corpus, packed: Path) -> Quality:
    """Of the records anywhere below `packed`; the sample is the same whoever packed."""
    sampled = set(_sample(corpus))
    pairs = [
        _compare(_decode((corpus.images / member).read_bytes()), _decode(jpeg))
        for member, jpeg in read_stored(packed)
        if member in sampled
    ]
    psnr, ssim = zip(*pairs, strict=True)
    return Quality(statistics.mean(psnr), statistics.mean(ssim), len(pairs))


def read_stored(packed: Path) -> Iterator[tuple[str, bytes]]:
    """(synset/name, image) of every record in the `.rec` files below a folder, by the `.lst` beside each."""
    for path in sorted(packed.rglob("*.rec")):
        lines = path.with_suffix(".lst").read_text().splitlines()
        members = {record_id: member for record_id, _, member in map(parse_list_line, lines)}
        with path.open("rb") as file:
            for _, payload in iterate_records(file.read, path.name):
                record = unpack_image(payload, path.name)
                yield members[record.record_id], record.image


def _sample(corpus: Corpus) -> list[str]:
    """Images that are larger than what is stored, evenly over the corpus."""
    larger = [
        str(path.relative_to(corpus.images))
        for path in sorted(corpus.images.rglob("*.JPEG"))
        if min(_decode(path.read_bytes()).shape[:2]) > _SHORT_EDGE
    ]
    return larger[:: math.ceil(len(larger) / _NUM_SAMPLED)]


def _decode(jpeg: bytes) -> _Floats:
    return cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR).astype(np.float64)


def _compare(source: _Floats, stored: _Floats) -> tuple[float, float]:
    """(PSNR in dB, SSIM)."""
    reference = _lanczos(source, stored.shape[1], stored.shape[0])
    error = float(np.mean((reference - stored) ** 2))
    return 10 * math.log10(255**2 / error), _ssim(_luma(reference), _luma(stored))


def _lanczos(pixels: _Floats, width: int, height: int) -> _Floats:
    planes = [Image.fromarray(plane.astype(np.float32)) for plane in np.moveaxis(pixels, 2, 0)]
    scaled = [np.asarray(plane.resize((width, height), Image.Resampling.LANCZOS), np.float64) for plane in planes]
    return np.clip(np.stack(scaled, 2), 0, 255)


def _luma(pixels: _Floats) -> _Floats:
    return np.asarray(pixels @ np.array([0.114, 0.587, 0.299]), np.float64)


def _ssim(one: _Floats, other: _Floats) -> float:
    def blur(plane: _Floats) -> _Floats:
        return np.asarray(cv2.GaussianBlur(plane, (11, 11), 1.5), np.float64)

    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    mean_one, mean_other = blur(one), blur(other)
    variance_one, variance_other = blur(one * one) - mean_one**2, blur(other * other) - mean_other**2
    covariance = blur(one * other) - mean_one * mean_other
    likeness = (2 * mean_one * mean_other + c1) * (2 * covariance + c2)
    return float(np.mean(likeness / ((mean_one**2 + mean_other**2 + c1) * (variance_one + variance_other + c2))))
