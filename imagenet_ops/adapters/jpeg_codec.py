"""JPEGs decoded strictly and encoded, by simplejpeg.

OpenCV hands back half-grey pixels for a JPEG that is cut short, without a word. simplejpeg's strict mode takes
libjpeg's warnings for what they are: it sees a cut file always, and flipped bytes when they break the entropy coding
(of files with 8 flipped bytes it saw 93 in 100, with one flipped byte 3 in 10).
"""

from __future__ import annotations

import cv2
import numpy as np
import simplejpeg

from imagenet_ops.adapters.stored_image import Pixels
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.domain.jpeg_structure import JpegStructure

_END_OF_IMAGE = b"\xff\xd9"
_REDUCED = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}


class UnnamedSampling(Exception):
    """TurboJPEG has no name for the sampling of the chroma, and simplejpeg gives up on it."""


def check_jpeg(jpeg: bytes) -> None:
    """Decodes all of the image at 1/8 of its size, which takes half the time.

    Raises UnusableImage, or UnnamedSampling where it can't tell.
    """
    _decode(jpeg, "GRAY", 1, 1)


def decode_jpeg(jpeg: bytes, structure: JpegStructure, scale: int, *, grey: bool) -> Pixels:
    """The pixels as stored, at 1/`scale` of their size, rounded up. Raises UnusableImage."""
    height, width = -(-structure.height // scale), -(-structure.width // scale)
    try:
        pixels = _decode(jpeg, "GRAY" if grey else "BGR", height, width)
    except UnnamedSampling:
        return _decode_leniently(jpeg, structure, scale)
    return pixels[:, :, 0] if grey else pixels


def encode_jpeg(pixels: Pixels, quality: int) -> bytes:
    """Colour with half the chroma in each direction (4:2:0), as im2rec writes it; grey with one component."""
    if pixels.ndim == 2:
        return bytes(simplejpeg.encode_jpeg(pixels[:, :, None], quality, "GRAY", "Gray"))
    return bytes(simplejpeg.encode_jpeg(pixels, quality, "BGR", "420"))


def turn_upright(pixels: Pixels, orientation: int) -> Pixels:
    """Exif: 2 to 4 are flips, 5 to 8 are the same after a transposition."""
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    rows = slice(None, None, -1 if orientation in (3, 4, 7, 8) else 1)
    columns = slice(None, None, -1 if orientation in (2, 3, 6, 7) else 1)
    return np.ascontiguousarray(pixels[rows, columns])


def _decode(jpeg: bytes, colours: str, min_height: int, min_width: int) -> Pixels:
    try:
        return np.asarray(
            simplejpeg.decode_jpeg(jpeg, colours, min_height=min_height, min_width=min_width, strict=True), np.uint8
        )
    except ValueError as error:
        message = str(error).lower()
        if "subsampling" in message:
            raise UnnamedSampling from error
        raise UnusableImage(_name_fault(message)) from error


def _name_fault(message: str) -> str:
    """What libjpeg's words come to. It also says `unsupported` of a marker, which is damage."""
    if message.startswith(("unsupported jpeg", "unsupported color")):
        return "unsupported kind of JPEG"
    return "JPEG cut short" if "end of jpeg file" in message else "JPEG damaged"


def _decode_leniently(jpeg: bytes, structure: JpegStructure, scale: int) -> Pixels:
    """By OpenCV, to whom any sampling is right; that the image has an end is all that is asked of it then."""
    if jpeg.find(_END_OF_IMAGE, structure.first_scan) == -1:
        raise UnusableImage("JPEG cut short")
    pixels = cv2.imdecode(np.frombuffer(jpeg, np.uint8), _REDUCED[scale] | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        raise UnusableImage("JPEG damaged")
    return np.asarray(pixels, np.uint8)
