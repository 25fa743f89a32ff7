"""CODEC_LOOP FOLDER CHECK: the fast profile's codec on every image of a folder, one after the other, and nothing kept.

What packing takes beyond this is reading the archive, dealing images to processes, hashing, records and files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from imagenet_ops.adapters.fast_codec import FastCodec

from imagenet_ops.settings import DatasetSettings

_SETTINGS = (
    "short_edge_pixels",
    "long_edge_pixels",
    "jpeg_quality",
    "enlarge",
    "max_kept_bytes",
    "keep_grey",
    "keep_metadata",
)


def main(folder: str, check: str) -> None:
    settings: dict[str, Any] = {name: DatasetSettings.model_fields[name].default for name in _SETTINGS}
    codec = FastCodec(**settings, check=check)
    for path in sorted(Path(folder).rglob("*.JPEG")):
        codec.transcode(path.read_bytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
