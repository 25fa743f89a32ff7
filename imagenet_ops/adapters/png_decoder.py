"""PNGs brought to 8 bits, grey or colour."""

from __future__ import annotations

import cv2
import numpy as np

from imagenet_ops.adapters.stored_image import Pixels
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.domain.png_check import find_png_fault

_COLOUR_TYPE_AT = 25  # https://www.w3.org/TR/png/ §11.2.1
_GREY_TYPES = (0, 4)  # without and with alpha


def is_grey_png(png: bytes) -> bool:
    return png[_COLOUR_TYPE_AT] in _GREY_TYPES


def decode_png(png: bytes, *, grey: bool) -> Pixels:
    """Of 16 bits the upper 8 stay; what is transparent shows white. Raises UnusableImage."""
    if fault := find_png_fault(png):
        raise UnusableImage(f"PNG {fault}")
    decoded = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    if decoded is None:
        raise UnusableImage("PNG damaged")
    pixels = decoded.view(np.uint8)[..., 1::2] if decoded.dtype == np.uint16 else decoded.view(np.uint8)
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        pixels = _lay_on_white(pixels)
    if grey:
        return pixels if pixels.ndim == 2 else np.ascontiguousarray(pixels[:, :, 0])
    return pixels if pixels.ndim == 3 else np.asarray(cv2.cvtColor(pixels, cv2.COLOR_GRAY2BGR), np.uint8)


def _lay_on_white(pixels: Pixels) -> Pixels:
    """In 8 bits all along: of a large image, more would not be there to be had."""
    *colours, alpha = cv2.split(pixels)
    shown = cv2.multiply(cv2.merge(colours), cv2.merge([alpha] * 3), scale=1 / 255)
    return np.asarray(cv2.add(shown, cv2.merge([cv2.bitwise_not(alpha)] * 3)), np.uint8)
