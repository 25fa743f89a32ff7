"""The packing profile `fast`: changes only what has to change, and looks at every image as a whole."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from imagenet_ops.adapters.byte_search import find_marker
from imagenet_ops.adapters.jpeg_codec import UnnamedSampling, check_jpeg, decode_jpeg, encode_jpeg, turn_upright
from imagenet_ops.adapters.png_decoder import decode_png, is_grey_png
from imagenet_ops.adapters.resizer import resize
from imagenet_ops.adapters.stored_image import Pixels, StoredImage, Treatment
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.domain.exif import read_orientation, read_png_orientation
from imagenet_ops.domain.image_header import NotAnImage, read_image_header
from imagenet_ops.domain.jpeg_structure import JpegFault, JpegStructure, find_end, read_structure

MAX_DECODED_PIXELS = 2**26  # 200 MB of pixels, or 400 MB of the coefficients of a JPEG with several scans
_DCT_SCALES = (8, 4, 2)  # libjpeg-turbo has no fast code for those between
_MARGIN = 1.5  # pixels that DCT scaling leaves over for the resizer, or edges become soft


@dataclass(frozen=True, slots=True)
class FastCodec:
    """The profile with its settings, as `settings.py` describes them; edges are in pixels."""

    short_edge_pixels: int
    jpeg_quality: int
    long_edge_pixels: int = 65_500
    enlarge: bool = False
    check: Literal["decode", "structure"] = "decode"
    max_kept_bytes: int = 2**18
    keep_grey: bool = True
    keep_metadata: bool = False

    def transcode(self, data: bytes, *, with_pixels: bool = False) -> StoredImage:
        """Raises UnusableImage."""
        if data.startswith(b"\xff\xd8\xff"):
            try:
                return self._transcode_jpeg(data, with_pixels)
            except JpegFault as fault:
                raise UnusableImage(str(fault)) from None
        return self._transcode_png(data)

    def _transcode_jpeg(self, jpeg: bytes, with_pixels: bool) -> StoredImage:
        structure = read_structure(jpeg)
        orientation = read_orientation(jpeg) if structure.has_exif else 1
        size = (structure.width, structure.height)
        target = self._target_size(*_turn(size, orientation))
        if size == target and orientation == 1 and self._can_stay(jpeg, structure):
            with suppress(UnnamedSampling):  # then it goes the way of what has to change
                return self._keep(jpeg, structure, with_pixels)
        grey = self.keep_grey and structure.num_components == 1
        scale = _choose_scale(structure, min(target))
        pixels = decode_jpeg(jpeg, structure, scale, grey=grey)
        pixels = resize(pixels, *_turn(target, orientation), (structure.width / scale, structure.height / scale))
        return self._encode(turn_upright(pixels, orientation), _treatment(size, target), _metadata_bytes(structure))

    def _transcode_png(self, png: bytes) -> StoredImage:
        try:
            header = read_image_header(lambda offset, num_bytes: png[offset : offset + num_bytes])
        except NotAnImage as reason:
            raise UnusableImage(str(reason)) from None
        _require_room(header.width * header.height)
        orientation = read_png_orientation(png)
        size = (header.width, header.height)
        target = self._target_size(*_turn(size, orientation))
        pixels = resize(decode_png(png, grey=self.keep_grey and is_grey_png(png)), *_turn(target, orientation))
        return self._encode(turn_upright(pixels, orientation), _treatment(size, target), 0)

    def _target_size(self, width: int, height: int) -> tuple[int, int]:
        """The long edge is cut down to whole pixels, as im2rec does."""
        short, wanted = min(width, height), self.short_edge_pixels
        if short == 0:
            raise UnusableImage("JPEG without a size")
        if short > wanted or (short < wanted and self.enlarge):
            width, height = (max(wanted, edge * wanted // short) for edge in (width, height))
        if max(width, height) > self.long_edge_pixels:
            raise UnusableImage(f"long edge over {self.long_edge_pixels:,} pixels")
        return width, height

    def _can_stay(self, jpeg: bytes, structure: JpegStructure) -> bool:
        return (
            structure.is_plain
            and not structure.is_adobe_rgb
            and (structure.num_components == 3 or (structure.num_components == 1 and self.keep_grey))
            and len(jpeg) <= self.max_kept_bytes
        )

    def _keep(self, jpeg: bytes, structure: JpegStructure, with_pixels: bool) -> StoredImage:
        """The bytes without what no decoder needs, the same whatever the check; no entropy-coded data are touched."""
        end = find_end(jpeg, structure.first_scan, find_marker)
        pixels = None
        if with_pixels:
            pixels = decode_jpeg(jpeg, structure, _choose_scale(structure, self.short_edge_pixels), grey=False)
        elif self.check == "decode":
            _require_room(structure.width * structure.height)
            check_jpeg(jpeg)
        kept = _cut_out(jpeg, structure, end, self.keep_metadata)
        return StoredImage(kept, "kept", structure.width, structure.height, len(jpeg) - len(kept), pixels)

    def _encode(self, pixels: Pixels, treatment: Treatment, num_dropped_bytes: int) -> StoredImage:
        height, width = pixels.shape[:2]
        return StoredImage(encode_jpeg(pixels, self.jpeg_quality), treatment, width, height, num_dropped_bytes, pixels)


def _turn(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    return size if orientation < 5 else size[::-1]


def _choose_scale(structure: JpegStructure, short_edge: int) -> int:
    """Of DCT, so that the resizer gets more than it needs. Raises UnusableImage where even so there is no room."""
    width, height = structure.width, structure.height
    scales = (scale for scale in _DCT_SCALES if min(width, height) >= scale * _MARGIN * short_edge)
    scale = next(scales, 1)
    _require_room(width * height if structure.has_multiple_scans else width * height // scale**2)
    return scale


def _require_room(num_pixels: int) -> None:
    if num_pixels > MAX_DECODED_PIXELS:
        raise UnusableImage(f"more than {MAX_DECODED_PIXELS:,} pixels to decode")


def _treatment(size: tuple[int, int], target: tuple[int, int]) -> Treatment:
    if min(size) == min(target):
        return "reencoded"
    return "shrunk" if min(target) < min(size) else "enlarged"


def _metadata_bytes(structure: JpegStructure) -> int:
    return sum(stop - start for start, stop in structure.metadata)


def _cut_out(jpeg: bytes, structure: JpegStructure, end: int, keep_metadata: bool) -> bytes:
    pieces, position = [], 0
    for start, stop in () if keep_metadata else structure.metadata:
        pieces.append(jpeg[position:start])
        position = stop
    if not pieces and end == len(jpeg):
        return jpeg
    return b"".join([*pieces, jpeg[position:end]])
