"""Temporary."""

from __future__ import annotations

import struct

from imagenet_ops.adapters.im2rec_codec import Im2recCodec
from imagenet_ops.adapters.stored_image import StoredImage
from imagenet_ops.domain.image_header import read_image_header


class Im2recProfile(Im2recCodec):
    def transcode(self, data: bytes) -> StoredImage:  # type: ignore[override]
        image = super().transcode(data)
        header = read_image_header(lambda offset, num_bytes: image[offset : offset + num_bytes])
        return StoredImage(image, "reencoded", header.width, header.height, 0, None)
