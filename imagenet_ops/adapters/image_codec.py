"""Pixels in and out: decode strictly, bring to 8-bit RGB, resize the short edge, encode as JPEG.

OpenCV hands back half-grey pixels for a JPEG that is cut short, without a word. So JPEGs go through simplejpeg's strict
mode, which takes libjpeg's warnings for what they are; it sees a cut file always, and flipped bytes when they break
the entropy coding (of files with 8 flipped bytes it saw 93 in 100, with one flipped byte 3 in 10).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from imagenet_ops.domain.exif import read_orientation
from imagenet_ops.domain.png_check import find_png_fault
from imagenet_ops.manifests import PixelMoments

Pixels = NDArray[np.uint8]
"""Shape (height, width, 3), blue first as OpenCV has it."""

_MAX_JPEG_EDGE = 65_500  # libjpeg's JPEG_MAX_DIMENSION
cv2.setNumThreads(1)  # one task, one core: the tasks beside it have the others


class UnusableImage(Exception):
    """The image can't be packed; the text is the reason, short enough to be counted by."""


@dataclass(frozen=True)
class Transcoded:
    """A stored image: its JPEG, and the pixels that went into it."""

    jpeg: bytes
    pixels: Pixels


def transcode(data: bytes, short_edge: int, quality: int) -> Transcoded:
    """The JPEG or PNG in `data` with its short edge at `short_edge` pixels, enlarged where it is smaller.

    Grey, palette, CMYK and 16-bit become 8-bit RGB, alpha is dropped, a camera's orientation is applied and its tag
    removed with all other metadata. Raises UnusableImage.
    """
    pixels = _resize(_decode(data), short_edge)
    return Transcoded(simplejpeg.encode_jpeg(pixels, quality, "BGR", "420"), pixels)


def measure(pixels: Pixels) -> PixelMoments:
    """Exact sums over one image."""
    num_pixels = pixels.shape[0] * pixels.shape[1]
    mean, std = (stat[::-1, 0] for stat in cv2.meanStdDev(pixels))
    # OpenCV adds integers up and divides once, so rounding brings the exact sums back.
    return PixelMoments(
        num_pixels=num_pixels,
        sums=[round(value) for value in mean * num_pixels],
        sums_of_squares=[round(value) for value in (std**2 + mean**2) * num_pixels],
    )


def _decode(data: bytes) -> Pixels:
    if not data.startswith(b"\xff\xd8"):
        return _decode_png(data)
    try:
        pixels = simplejpeg.decode_jpeg(data, "BGR", strict=True)
    except ValueError as error:
        cut_short = "end of jpeg file" in str(error).lower()
        raise UnusableImage("JPEG cut short" if cut_short else "JPEG damaged") from error
    return _upright(pixels, read_orientation(data))


def _decode_png(data: bytes) -> Pixels:
    if fault := find_png_fault(data):
        raise UnusableImage(f"PNG {fault}")
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        raise UnusableImage("PNG damaged")
    return pixels.astype(np.uint8, copy=False)


def _upright(pixels: Pixels, orientation: int) -> Pixels:
    """Exif: 2 to 4 are flips, 5 to 8 are the same after a transposition."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    flips_rows = orientation in (3, 4, 7, 8)
    flips_columns = orientation in (2, 3, 6, 7)
    return np.ascontiguousarray(pixels[:: -1 if flips_rows else 1, :: -1 if flips_columns else 1])


def _resize(pixels: Pixels, short_edge: int) -> Pixels:
    """The long edge is cut down to whole pixels, as im2rec does."""
    height, width = pixels.shape[:2]
    size = (short_edge, height * short_edge // width) if height > width else (width * short_edge // height, short_edge)
    if max(size) > _MAX_JPEG_EDGE:
        raise UnusableImage(f"long edge over {_MAX_JPEG_EDGE:,} pixels")
    if size == (width, height):
        return pixels
    shrinks = short_edge < min(height, width)
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC).astype(
        np.uint8, copy=False
    )
