"""What packing reads of a dataset's settings, and the codec that they mean."""

from __future__ import annotations

from typing import Literal

from imagenet_ops.adapters.codec_versions import codec_versions
from imagenet_ops.adapters.fast_codec import FastCodec
from imagenet_ops.adapters.im2rec_codec import Im2recCodec
from imagenet_ops.adapters.stored_image import Codec
from imagenet_ops.settings import Settings
from imagenet_ops.stages.stage import StageContext

Profile = Literal["fast", "im2rec"]


class PackSettings(Settings):
    """What the stored images are, and how they are dealt to chunks; `codec` maps library to version."""

    seed: int
    profile: Profile
    short_edge_pixels: int
    long_edge_pixels: int
    jpeg_quality: int
    enlarge: bool
    check: Literal["decode", "structure"]
    max_kept_bytes: int
    keep_grey: bool
    keep_metadata: bool
    max_seconds_per_image: float
    num_chunks: int
    target_chunk_bytes: int | None
    also_write: list[Literal["webdataset", "parquet"]]
    codec: dict[str, str]


def read_pack_settings(context: StageContext) -> PackSettings:
    dataset = context.dataset
    values = dataset.model_dump(include=set(PackSettings.model_fields) - {"codec"})
    return PackSettings.model_validate(values | {"codec": codec_of(dataset.profile)})


def codec_of(profile: Profile) -> dict[str, str]:
    """Versions of the libraries of this machine that decide a profile's bytes."""
    versions = codec_versions()
    return versions if profile == "fast" else {name: versions[name] for name in versions if "opencv" in name}


def build_codec(settings: PackSettings) -> Codec:
    if settings.profile == "im2rec":
        return Im2recCodec(resize=settings.short_edge_pixels, quality=settings.jpeg_quality)
    return FastCodec(
        short_edge_pixels=settings.short_edge_pixels,
        long_edge_pixels=settings.long_edge_pixels,
        jpeg_quality=settings.jpeg_quality,
        enlarge=settings.enlarge,
        check=settings.check,
        max_kept_bytes=settings.max_kept_bytes,
        keep_grey=settings.keep_grey,
        keep_metadata=settings.keep_metadata,
    )
