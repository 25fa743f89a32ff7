"""docs/odd_images.md: what becomes of odd images. `python -m tests.odd_images_table` writes it anew.

Beside the two profiles stands what im2rec.py does: the same OpenCV calls, without a look at whether an image is whole.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import cv2
import numpy as np

from imagenet_ops.adapters.fast_codec import FastCodec
from imagenet_ops.adapters.im2rec_codec import Im2recCodec
from imagenet_ops.adapters.stored_image import Codec, Pixels
from imagenet_ops.adapters.unusable_image import UnusableImage
from tests.odd_images import odd_images

DOCUMENT = Path(__file__).parents[1] / "docs" / "odd_images.md"
SHORT_EDGE, QUALITY = 48, 90
_HEAD = f"""# Odd images

What the codecs make of every odd kind of image that archives hold, with `short_edge_pixels: {SHORT_EDGE}`. The images
have 120 × 80 pixels unless it says otherwise. im2rec.py stands for MXNet's, run with several processes; with one it
ends at the first image that it leaves out. What a codec skips is counted by its reason and goes to the quarantine.

In the pipeline neither profile comes to see what is no JPEG or PNG: `untar` has rejected it by then, counted it by its
reason, and listed it in `untar/…/data/rejected_*.parquet`. `imagenet-ops im2rec` sees all that a list names.

`python -m tests.odd_images_table` writes this table by running the code; a test holds the two against each other.

| what | profile `fast` | profile `im2rec` | im2rec.py |
|---|---|---|---|
"""


def build_document() -> str:
    fast, im2rec = FastCodec(SHORT_EDGE, QUALITY), Im2recCodec(SHORT_EDGE, quality=QUALITY)
    return _HEAD + "".join(
        f"| {name} | {describe(fast, data)} | {describe(im2rec, data)} | {describe_original(data)} |\n"
        for name, data in odd_images().items()
    )


def describe(codec: Codec, data: bytes) -> str:
    """`shrunk to 72 × 48` or `skipped: JPEG cut short`."""
    try:
        stored = codec.transcode(data)
    except UnusableImage as reason:
        return f"skipped: {reason}"
    dropped = f", {stored.num_dropped_bytes:,} bytes dropped" if stored.num_dropped_bytes else ""
    return f"{stored.treatment}, {stored.width} × {stored.height}{_colours(stored.image)}{dropped}"


def describe_original(data: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".JPEG") as file:
        file.write(data)
        file.flush()
        try:
            pixels = cv2.imread(file.name, cv2.IMREAD_COLOR)
        except cv2.error:
            pixels = None
    if pixels is None:
        return "left out, exit code 0"
    height, width = pixels.shape[:2]
    size = (SHORT_EDGE, height * SHORT_EDGE // width) if height > width else (width * SHORT_EDGE // height, SHORT_EDGE)
    if max(size) > 65_500:
        return "left out, exit code 0"
    return f"{size[0]} × {size[1]}{', partly grey' if _is_partly_grey(pixels) else ''}"


def _is_partly_grey(pixels: Pixels) -> bool:
    """Whether the last rows are one flat grey, as OpenCV fills up what is missing."""
    return bool(len(pixels) > 8 and np.ptp(pixels[-4:].reshape(-1, 3), axis=0).max() == 0)


def _colours(image: bytes) -> str:
    pixels = cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_UNCHANGED)
    return " grey" if pixels.ndim == 2 else ""


if __name__ == "__main__":
    DOCUMENT.write_text(build_document(), encoding="utf-8")
