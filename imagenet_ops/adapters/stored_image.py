"""What a codec makes of one image, whichever the profile."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
"""Shape (height, width, 3), blue first as OpenCV has it, or (height, width) for grey."""

Treatment = Literal["kept", "shrunk", "enlarged", "reencoded"]


class StoredImage(NamedTuple):
    """An image as its record has it. `num_dropped_bytes` of the source were metadata or lay behind the image's end.

    `pixels` are those that were encoded, or of a kept image where they were asked for.
    """

    image: bytes
    treatment: Treatment
    width: int
    height: int
    num_dropped_bytes: int
    pixels: NDArray[Any] | None


class Codec(Protocol):
    """A packing profile with its settings: the same bytes in give the same bytes out."""

    def transcode(self, data: bytes, *, with_pixels: bool = False) -> StoredImage:
        """`with_pixels` decodes kept images at their full size too. Raises UnusableImage."""
