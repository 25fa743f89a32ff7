"""Sums over the pixels of a stored image, beside numpy's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from imagenet_ops.adapters.fast_codec import FastCodec
from imagenet_ops.adapters.pixel_moments import measure
from imagenet_ops.adapters.stored_image import Pixels
from tests.builders import jpeg, png


def exact(pixels: Pixels) -> tuple[int, list[int], list[int]]:
    colours = pixels[:, :, ::-1] if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)
    red_first = colours.astype(np.int64).reshape(-1, 3)
    return len(red_first), red_first.sum(0).tolist(), (red_first**2).sum(0).tolist()


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (480, 640), (480, 1999), (1201, 1601)])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_sums_are_exact(shape: tuple[int, int], channels: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(shape[1]).integers(0, 256, (*shape, *channels), dtype=np.uint8)
    assert measure(pixels) == exact(pixels)


@pytest.mark.parametrize("value", [0, 1, 254, 255])
def test_sums_of_a_flat_picture_are_exact(value: int) -> None:
    pixels = np.full((1000, 1500, 3), value, np.uint8)
    assert measure(pixels) == exact(pixels)


def test_sums_of_a_nearly_flat_picture_are_exact() -> None:
    pixels = np.full((900, 900, 3), 254, np.uint8)
    pixels[::7, ::3] = 255
    assert measure(pixels) == exact(pixels)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_sums_are_of_the_pixels_that_go_into_the_jpeg(mode: str) -> None:
    stored = FastCodec(30, 90).transcode(png(80, 60, seed=2, mode=mode))  # type: ignore[arg-type]
    assert stored.pixels is not None
    assert measure(stored.pixels) == exact(stored.pixels)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_sums_of_a_kept_image_are_of_its_decoded_pixels(mode: str) -> None:
    data = jpeg(80, 60, seed=2, mode=mode)  # type: ignore[arg-type]
    assert FastCodec(60, 90).transcode(data).pixels is None
    stored = FastCodec(60, 90).transcode(data, with_pixels=True)
    assert stored.treatment == "kept" and stored.image == data and stored.pixels is not None
    assert measure(stored.pixels) == exact(np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), 1), np.uint8))
