"""Sums over the pixels of an image, for mean and deviation of a dataset."""

from __future__ import annotations

import cv2
import numpy as np

from imagenet_ops.adapters.stored_image import Pixels


def measure(pixels: Pixels) -> tuple[int, list[int], list[int]]:
    """Number of pixels, exact sums and sums of squares of red, green, blue; grey counts as three equal colours."""
    num_pixels = pixels.shape[0] * pixels.shape[1]
    mean, std = (np.resize(stat[::-1, 0], 3) for stat in cv2.meanStdDev(pixels))
    # OpenCV adds integers up and divides once, so rounding brings the exact sums back.
    sums = [round(value) for value in mean * num_pixels]
    return num_pixels, sums, [round(value) for value in (std**2 + mean**2) * num_pixels]
