"""Searches for bytes in an image, by numpy: every image that is kept goes through both."""

from __future__ import annotations

import numpy as np

from imagenet_ops.domain.recordio import MAGIC

_MAGIC = np.frombuffer(MAGIC, np.uint32)[0]
_WINDOW_BYTES = 2**16
# ITU-T T.81 §B.1.1.5: in entropy-coded data a 0xFF is followed by 0 or by a restart marker; 0xFF fills up.
_ENDS_SCAN = np.ones(256, np.bool_)
_ENDS_SCAN[[0x00, 0xFF, *range(0xD0, 0xD8)]] = False


def holds_aligned_magic(image: bytes) -> bool:
    """Whether RecordIO's magic stands in it at a multiple of 4."""
    return bool((np.frombuffer(image, np.uint32, len(image) // 4) == _MAGIC).any())


def find_marker(jpeg: bytes, position: int) -> int | None:
    """The first marker at or behind `position`, which lies in entropy-coded data; None where there is none."""
    for start in range(position, len(jpeg) - 1, _WINDOW_BYTES):
        window = np.frombuffer(jpeg, np.uint8, min(_WINDOW_BYTES + 1, len(jpeg) - start), start)
        candidates = np.flatnonzero((window[:-1] == 0xFF) & (window[1:] != 0))
        markers = candidates[_ENDS_SCAN[window[candidates + 1]]]
        if markers.size:
            return start + int(markers[0])
    return None
