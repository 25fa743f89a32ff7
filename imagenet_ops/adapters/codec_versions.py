"""Which versions of the codec libraries are here: they decide a stored image's bytes, and how long it takes."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version

import cv2

_DISTRIBUTIONS = {"opencv": "opencv-python-headless", "simplejpeg": "simplejpeg", "cykooz-resizer": "cykooz-resizer"}


@cache
def codec_versions() -> dict[str, str]:
    """Library → version; OpenCV's with that of the JPEG library built into it."""
    versions = {name: version(distribution) for name, distribution in _DISTRIBUTIONS.items()}
    return {**versions, "opencv-jpeg": _build_line("JPEG")}


def find_slow_jpeg(build_information: str | None = None) -> str | None:
    """What to tell a user whose OpenCV has a JPEG library without SIMD, as its wheels before 4.10 do; else None."""
    simd = _build_line("SIMD Support", build_information)
    jpeg = _build_line("JPEG", build_information)
    if "turbo" in jpeg and simd == "YES":
        return None
    return (
        f"OpenCV {cv2.__version__} has a JPEG codec without SIMD ({jpeg or 'unknown'}): decoding takes 1.8 times, "
        "encoding 5 times as long as with it; install opencv-python-headless 4.10 or later"
    )


def _build_line(title: str, build_information: str | None = None) -> str:
    text = cv2.getBuildInformation() if build_information is None else build_information
    found = re.search(rf"^\s*{re.escape(title)}:\s*(.*?)\s*$", text, re.MULTILINE)
    return found[1] if found else ""
