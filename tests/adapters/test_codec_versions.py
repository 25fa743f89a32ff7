"""The codec's versions, and an OpenCV that is slow for want of SIMD."""

from __future__ import annotations

import pytest

from imagenet_ops.adapters.codec_versions import codec_versions, find_slow_jpeg

# Of `cv2.getBuildInformation()`, as the wheels print it.
WHEEL_4_8 = """
  Media I/O:
    ZLib:                        /lib64/libz.so (ver 1.2.7)
    JPEG:                        libjpeg-turbo (ver 2.1.3-62)
"""
WHEEL_4_11 = """
  Media I/O:
    JPEG:                        build-libjpeg-turbo (ver 3.0.3-70)
      SIMD Support Request:      YES
      SIMD Support:              YES
"""


def test_every_library_that_decides_the_bytes_has_a_version() -> None:
    versions = codec_versions()
    assert set(versions) == {"opencv", "opencv-jpeg", "simplejpeg", "cykooz-resizer"}
    assert all(versions.values())


def test_the_opencv_that_is_installed_is_a_fast_one() -> None:
    assert find_slow_jpeg() is None
    assert find_slow_jpeg(WHEEL_4_11) is None


@pytest.mark.parametrize(
    ("build_information", "found"),
    [
        (WHEEL_4_8, "libjpeg-turbo (ver 2.1.3-62)"),
        (
            WHEEL_4_11.replace("Support:              YES", "Support:              NO"),
            "build-libjpeg-turbo (ver 3.0.3-70)",
        ),
        ("    JPEG:   libjpeg (ver 90)\n      SIMD Support: YES", "libjpeg (ver 90)"),
        ("", "unknown"),
    ],
)
def test_an_opencv_without_simd_is_told_of_with_the_way_out(build_information: str, found: str) -> None:
    told = find_slow_jpeg(build_information)
    assert told is not None
    assert f"without SIMD ({found})" in told
    assert told.endswith("install opencv-python-headless 4.10 or later")
