"""Pixels as im2rec.py makes them: OpenCV reads, crops, resizes and writes, with its defaults.

What OpenCV would fill up with grey is refused: a JPEG whose data break off. That is told by the missing end marker,
which costs next to nothing; bytes flipped in the middle, or a hole closed by a later end marker, are not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from cv2.typing import MatLike
from numpy.typing import NDArray

from imagenet_ops.adapters.stored_image import StoredImage, Treatment
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.domain.image_header import ImageHeader, NotAnImage, read_image_header

_MAX_JPEG_EDGE = 65_500  # libjpeg's JPEG_MAX_DIMENSION
_JPEG, _END_OF_IMAGE = b"\xff\xd8\xff", b"\xff\xd9"
_START_OF_SCAN = 0xDA
cv2.setNumThreads(1)  # one image, one core: the images beside it have the others


@dataclass(frozen=True)
class Im2recCodec:
    """The same bytes as im2rec.py with these options and the same OpenCV.

    `resize` is the short edge in pixels, 0 for as it is. `color` is OpenCV's: 1 colour, 0 grey, -1 as it is, which
    keeps alpha and 16 bits and applies no orientation. With `pass_through` nothing else counts.
    """

    resize: int = 0
    center_crop: bool = False
    quality: int = 95
    color: Literal[-1, 0, 1] = 1
    encoding: Literal[".jpg", ".png"] = ".jpg"
    pass_through: bool = False

    def transcode(self, data: bytes, *, with_pixels: bool = False) -> StoredImage:
        """Raises UnusableImage for what OpenCV can't read or write, and for a JPEG that is cut short.

        With `pass_through` for what is no image; whether an image is whole is not looked at then.
        """
        if self.pass_through:
            width, height = _read_size(data)
            pixels = _read_pixels(data, self.color) if with_pixels else None
            return StoredImage(data, "kept", width, height, 0, pixels)
        pixels = _decode(data, self.color)
        short_edge = min(pixels.shape[:2])
        if self.center_crop:
            pixels = _crop(pixels)
        if self.resize:
            pixels = self._resize(pixels)
        height, width = pixels.shape[:2]
        return StoredImage(self._encode(pixels), _treatment(short_edge, min(width, height)), width, height, 0, pixels)

    def _resize(self, pixels: MatLike) -> MatLike:
        """The long edge is cut down to whole pixels."""
        height, width = pixels.shape[:2]
        short_edge = self.resize
        size = (
            (short_edge, height * short_edge // width) if height > width else (width * short_edge // height, short_edge)
        )
        self._require_edges(*size)
        try:
            return cv2.resize(pixels, size)
        except cv2.error as error:
            raise UnusableImage("too large once resized") from error

    def _encode(self, pixels: MatLike) -> bytes:
        height, width = pixels.shape[:2]
        self._require_edges(width, height)
        parameter = cv2.IMWRITE_JPEG_QUALITY if self.encoding == ".jpg" else cv2.IMWRITE_PNG_COMPRESSION
        is_encoded, image = cv2.imencode(self.encoding, pixels, (parameter, self.quality))
        if not is_encoded:
            raise UnusableImage(f"can't be written as {self.encoding}")
        return image.tobytes()

    def _require_edges(self, width: int, height: int) -> None:
        if self.encoding == ".jpg" and max(width, height) > _MAX_JPEG_EDGE:
            raise UnusableImage(f"long edge over {_MAX_JPEG_EDGE:,} pixels")


def _decode(data: bytes, color: int) -> MatLike:
    if data.startswith(_JPEG) and not _has_end(data):
        raise UnusableImage("JPEG cut short")
    pixels = _read_pixels(data, color)
    if pixels is None:
        raise UnusableImage(_describe(data))
    return pixels


def _read_pixels(data: bytes, color: int) -> MatLike | None:
    source: NDArray[Any] = np.frombuffer(data, np.uint8)
    try:
        return cv2.imdecode(source, color) if data else None
    except cv2.error:  # where imread prints the error and gives nothing
        return None


def _crop(pixels: MatLike) -> MatLike:
    """The square in the middle; where it can't be in the middle, it is one pixel further up or left."""
    height, width = pixels.shape[:2]
    edge = min(height, width)
    top, left = (height - edge) // 2, (width - edge) // 2
    return pixels[top : top + edge, left : left + edge]


def _treatment(short_edge: int, stored_short_edge: int) -> Treatment:
    if short_edge == stored_short_edge:
        return "reencoded"
    return "shrunk" if stored_short_edge < short_edge else "enlarged"


def _read_size(data: bytes) -> tuple[int, int]:
    """(width, height) of a JPEG or PNG by its header, or of whatever else OpenCV can read."""
    try:
        header = _read_header(data)
        return header.width, header.height
    except NotAnImage as reason:
        pixels = _read_pixels(data, cv2.IMREAD_UNCHANGED)
        if pixels is None:
            raise UnusableImage(str(reason)) from reason
        return pixels.shape[1], pixels.shape[0]


def _describe(data: bytes) -> str:
    """Why OpenCV could not read it."""
    try:
        return f"{_read_header(data).format.upper()} damaged"
    except NotAnImage as reason:
        return str(reason)


def _read_header(data: bytes) -> ImageHeader:
    return read_image_header(lambda offset, num_bytes: data[offset : offset + num_bytes])


def _has_end(jpeg: bytes) -> bool:
    """Whether an end marker follows the first scan; what lies behind it, as in a phone's motion photo, is nobody's."""
    return jpeg.endswith(_END_OF_IMAGE) or jpeg.find(_END_OF_IMAGE, _find_scan(jpeg)) != -1


def _find_scan(jpeg: bytes) -> int:
    """Where the first scan begins, behind the segments with their thumbnails; the end where there is none."""
    position = 2
    while position + 4 <= len(jpeg):
        if jpeg[position] != 0xFF or jpeg[position + 1] == _START_OF_SCAN:
            return position
        if jpeg[position + 1] == 0xFF:  # a fill byte
            position += 1
        else:
            position += 2 + int.from_bytes(jpeg[position + 2 : position + 4], "big")
    return len(jpeg)
