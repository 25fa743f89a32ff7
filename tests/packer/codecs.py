"""Codecs for the tests of packing: an image of these is a text that says what the codec does with it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from imagenet_ops.adapters.stored_image import StoredImage
from imagenet_ops.adapters.unusable_image import UnusableImage


def kept(data: bytes) -> StoredImage:
    return StoredImage(data, "kept", 640, 480, 0, None)


@dataclass(frozen=True)
class ObedientCodec:
    """`skip`, `crash`, `hang`, `hog` (memory), `killed`, `raise`; `once KIND FILE`: only while FILE is not there."""

    def transcode(self, data: bytes, *, with_pixels: bool = False) -> StoredImage:
        word, *rest = data.split(b" ")
        if word == b"once":
            path = Path(os.fsdecode(rest[1]))
            if path.exists():
                return kept(data)
            path.touch()
            word = rest[0]
        match word:
            case b"skip":
                raise UnusableImage("told to skip")
            case b"crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            case b"killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case b"hang":
                time.sleep(3600)
            case b"hog":
                hoard = [bytearray(os.urandom(2**20)) for _ in range(300)]
                time.sleep(3600 + len(hoard))
            case b"raise":
                raise ZeroDivisionError("told to raise")
            case b"slow":
                time.sleep(0.05)
        return kept(data)
