"""make bench NAME=resize_quality: ways to shrink a JPEG to a short edge of 480 pixels, by CPU time and by quality.

Every photograph is brought to three sizes and encoded as a camera does; each way decodes that, resizes it and encodes
what comes out with quality 90 and 4:2:0, on one thread. Quality is told as `packing/quality.py` does: beside the source
brought to 480 pixels with Lanczos in floats. `full` decodes at full size; a number is how many times the target's edge
decoding leaves to the resizer at least, and the scale of DCT does the rest. The last line has, for each way, medians of
milliseconds an image, and means of PSNR, SSIM and bytes, each size counting the same.

    ARGS="FOLDER"    other photographs, *.jpg, than those of `packing/photographs.py`
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from cykooz_resizer import FilterType, ImageData, PixelType, ResizeAlg, ResizeOptions, Resizer

from benchmarks.packing.photographs import fetch_photographs
from benchmarks.packing.quality import _compare as compare
from imagenet_ops.adapters.jpeg_codec import decode_jpeg, encode_jpeg
from imagenet_ops.adapters.resizer import resize as resize_with_lanczos3
from imagenet_ops.adapters.stored_image import Pixels
from imagenet_ops.domain.jpeg_structure import read_structure

_NUM_RUNS = 5
_SOURCE_SHORT_EDGES = (640, 1024, 1536)  # 1.3, 2.1 and 3.2 times the target
_SHORT_EDGE, _QUALITY, _SOURCE_QUALITY = 480, 90, 95
_SCALES = (8, 4, 2)
Resize = Callable[[Pixels, int, int], Pixels]


@dataclass(frozen=True)
class Way:
    """`margin` is how many times the target's edge decoding leaves at least; None decodes at full size."""

    resize: Resize
    margin: float | None

    def shrink(self, jpeg: bytes) -> bytes:
        structure = read_structure(jpeg)
        short_edge = min(structure.width, structure.height)
        wanted = short_edge if self.margin is None else self.margin * _SHORT_EDGE
        scale = next((scale for scale in _SCALES if short_edge >= scale * wanted), 1)
        pixels = decode_jpeg(jpeg, structure, scale, grey=False)
        width, height = (edge * _SHORT_EDGE // short_edge for edge in (structure.width, structure.height))
        return encode_jpeg(self.resize(pixels, width, height), _QUALITY)


@dataclass(frozen=True)
class Measured:
    """Of one way over the photographs of one size."""

    milliseconds: float
    psnr_db: float
    ssim: float
    num_bytes: float


def main() -> None:
    cv2.setNumThreads(1)
    paths = sorted(Path(sys.argv[1]).glob("*.jpg")) if len(sys.argv) > 1 else fetch_photographs()
    results: dict[str, list[Measured]] = {name: [] for name in WAYS}
    for short_edge in _SOURCE_SHORT_EDGES:
        sources = [source for path in paths if (source := render_source(path, short_edge))]
        seconds = time_in_turn(sources)
        print(f"\nshort edge {short_edge}, {len(sources)} images\n{'way':<26}{'ms':>7}{'dB':>7}{'SSIM':>8}{'kB':>6}")
        for name, way in WAYS.items():
            found = measure(way, sources, statistics.median(seconds[name]))
            results[name].append(found)
            line = f"{found.milliseconds:>7.2f}{found.psnr_db:>7.2f}{found.ssim:>8.4f}{found.num_bytes / 1000:>6.0f}"
            print(f"{name:<26}{line}", flush=True)
    print(json.dumps({name: summarise(found) for name, found in results.items()}))


def render_source(path: Path, short_edge: int) -> bytes | None:
    """The photograph as a JPEG whose edges are whole at every scale of DCT; None where it is smaller."""
    pixels = cv2.imread(str(path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    smaller = min(pixels.shape[:2])
    if smaller < short_edge:
        return None
    height, width = (edge * short_edge // smaller // 8 * 8 for edge in pixels.shape[:2])
    return encode_jpeg(np.asarray(cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)), _SOURCE_QUALITY)


def time_in_turn(sources: list[bytes]) -> dict[str, list[float]]:
    """Seconds of CPU time of each way and run."""
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(_NUM_RUNS):
        for name, way in WAYS.items():
            start = time.process_time()
            for source in sources:
                way.shrink(source)
            seconds[name].append(time.process_time() - start)
    return seconds


def measure(way: Way, sources: list[bytes], seconds: float) -> Measured:
    stored = [way.shrink(source) for source in sources]
    pairs = [compare(decode(source), decode(jpeg)) for source, jpeg in zip(sources, stored, strict=True)]
    psnr, ssim = map(statistics.mean, zip(*pairs, strict=True))
    return Measured(1000 * seconds / len(sources), psnr, ssim, statistics.mean(map(len, stored)))


def summarise(found: list[Measured]) -> dict[str, float]:
    """Each size counts the same."""
    digits = {"milliseconds": 2, "psnr_db": 2, "ssim": 4, "num_bytes": 0}
    return {key: round(statistics.mean(getattr(one, key) for one in found), places) for key, places in digits.items()}


def decode(jpeg: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return decode_jpeg(jpeg, read_structure(jpeg), 1, grey=False).astype(np.float64)


def with_opencv(interpolation: int) -> Resize:
    return lambda pixels, width, height: np.asarray(
        cv2.resize(pixels, (width, height), interpolation=interpolation), np.uint8
    )


def with_catmull_rom(pixels: Pixels, width: int, height: int) -> Pixels:
    """As the project's own resizer does, with the shorter filter."""
    source = ImageData(pixels.shape[1], pixels.shape[0], PixelType.U8x3, pixels.tobytes())
    target = ImageData(width, height, PixelType.U8x3)
    algorithm = ResizeAlg.convolution(FilterType.catmull_rom)
    Resizer().resize(source, target, ResizeOptions(resize_alg=algorithm, use_alpha=False))
    return np.frombuffer(target.get_buffer(), np.uint8).reshape(height, width, 3)


WAYS = {
    "opencv_linear_full": Way(with_opencv(cv2.INTER_LINEAR), None),  # im2rec's
    "opencv_area_full": Way(with_opencv(cv2.INTER_AREA), None),
    "opencv_area_1.5": Way(with_opencv(cv2.INTER_AREA), 1.5),
    "opencv_cubic_1.5": Way(with_opencv(cv2.INTER_CUBIC), 1.5),
    "opencv_lanczos4_1.5": Way(with_opencv(cv2.INTER_LANCZOS4), 1.5),
    "catmull_rom_1.5": Way(with_catmull_rom, 1.5),
    "lanczos3_full": Way(resize_with_lanczos3, None),
    "lanczos3_2": Way(resize_with_lanczos3, 2),
    "lanczos3_1.5": Way(resize_with_lanczos3, 1.5),  # the profile fast's
    "lanczos3_1": Way(resize_with_lanczos3, 1),
}


if __name__ == "__main__":
    main()
