"""A folder of images that OpenCV reads, the odd ones too."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import cv2
import numpy as np

from tests.builders import jpeg, picture, png

PngMode = Literal["RGB", "L", "RGBA", "P", "RGB16", "L16"]


def photograph(width: int, height: int, seed: int) -> bytes:
    """A JPEG with both smooth and rough parts."""
    return cv2.imencode(".jpg", _pixels(width, height, seed), (cv2.IMWRITE_JPEG_QUALITY, 92))[1].tobytes()


def progressive(width: int, height: int, seed: int) -> bytes:
    parameters = (cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_RST_INTERVAL, 2)
    return cv2.imencode(".jpg", _pixels(width, height, seed), parameters)[1].tobytes()


def odd_images() -> dict[str, bytes]:
    """{name: bytes} of what a folder from the internet has beside its photographs."""
    images = {f"turned {turn}.jpg": jpeg(70, 40, seed=turn, orientation=turn) for turn in range(1, 9)}
    images |= {f"{mode}.png": png(64, 50, seed, mode) for seed, mode in enumerate(get_args(PngMode))}
    return images | {
        "turned by an Intel.JPG": jpeg(40, 70, seed=11, orientation=6, byte_order="II"),
        "printed.jpg": jpeg(80, 60, seed=12, mode="CMYK"),
        "grey.jpg": jpeg(60, 80, seed=13, mode="L"),
        "in fact a png.JPEG": png(50, 64, seed=14),
        "in fact a jpeg.png": photograph(50, 64, seed=15),
        "progressive.jpeg": progressive(120, 90, seed=16),
        "with something behind.jpg": photograph(90, 60, seed=17) + bytes(300) + b"\xff\xda and more",
        "dot.jpg": jpeg(1, 1, seed=18),
        "dot.png": png(1, 1, seed=19),
        "line.jpg": photograph(1, 90, seed=20),
        "Schöner Säbelzahntiger 100%.jpg": photograph(75, 75, seed=21),
        "写真.png": png(31, 47, seed=22),
        ".hidden.jpg": photograph(47, 31, seed=23),
    }


def build_folder(root: Path) -> None:
    """Photographs and odd images at the top and in classes, with what im2rec.py passes over in between."""
    for number, name in enumerate(["n01", "n02", "n02/deeper", "n10", "N03", "with blank"]):
        folder = root / name
        folder.mkdir(parents=True)
        for seed in range(10 * number, 10 * number + 5):
            (folder / f"{seed}.jpg").write_bytes(photograph(60 + seed % 7 * 13, 60 + seed % 5 * 17, seed))
    for number, (name, data) in enumerate(odd_images().items()):
        (root / ("n01", "with blank", ".")[number % 3] / name).write_bytes(data)
    (root / "empty" / "a.jpg").mkdir(parents=True)
    (root / "n02" / "notes.txt").write_text("no image")
    (root / "n02" / "gone.jpg").symlink_to("nowhere.jpg")
    (root / "n10" / "again.jpg").symlink_to("../n01/0.jpg")
    (root / "linked").symlink_to("n10")


def _pixels(width: int, height: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    noise = np.random.default_rng(seed).integers(0, 32, (height, width, 3), dtype=np.uint8)
    return picture(width, height, seed) // 2 + noise
