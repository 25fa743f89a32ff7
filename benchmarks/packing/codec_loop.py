"""CODEC_LOOP FOLDER CHECK: the fast profile's codec on every image of a folder, one after the other, and nothing kept.

What packing takes beyond this is reading the archive, dealing images to processes, hashing, records and files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from imagenet_ops.adapters.fast_codec import FastCodec


def main(folder: str, check: Literal["decode", "structure"]) -> None:
    codec = FastCodec(short_edge_pixels=480, jpeg_quality=90, check=check)
    for path in sorted(Path(folder).rglob("*.JPEG")):
        codec.transcode(path.read_bytes())


if __name__ == "__main__":
    main(sys.argv[1], "structure" if sys.argv[2] == "structure" else "decode")
