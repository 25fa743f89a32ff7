"""The settings of a dataset: frozen, self-checking, each knob with its unit, default and reason.

`catalogue.py` reads them from YAML. Titles, bounds and descriptions are also what Airflow's trigger form shows.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

DATASET_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]

# Depths that each network of the trainer can be built with; 0 where the network has only one depth.
NETWORK_LAYERS: dict[str, tuple[int, ...]] = {
    "resnet": (10, 18, 34, 50, 101, 152),
    "alexnet": (0,),
    "inception_v3": (0,),
    "mobilenet": (0,),
    "vgg": (11, 13, 16, 19),
}

# The smallest image that each network takes, in pixels: below it a layer would have nothing left to look at.
NETWORK_LEAST_PIXELS = {"resnet": 28, "alexnet": 63, "inception_v3": 299, "mobilenet": 28, "vgg": 32}

# Chunks of one split: a task each, and with those of the other split under Airflow's max_map_length of 1,024.
MAX_CHUNKS = 500


class Settings(BaseModel):
    """Base of all settings: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SourceSettings(Settings):
    """Where one archive comes from, and what it must be."""

    url: str = Field(min_length=1, description="http(s) or file URL, or a path relative to the catalogue file.")
    sha256: Sha256 | None = Field(None, description="Expected SHA-256; also the source's identity where given.")
    md5: Md5 | None = Field(None, description="Expected MD5, for publishers who give no better one.")
    num_bytes: int | None = Field(None, ge=0, description="Expected size in bytes.")


class LearningRateSchedule(Settings):
    """How the learning rate moves over the epochs."""

    kind: Literal["constant", "step", "cosine"] = Field("step", title="Learning-rate schedule")
    warmup_epochs: int = Field(0, ge=0, le=100, title="Warm-up epochs", description="Linear rise from zero.")
    step_epochs: list[int] = Field([30, 60, 80], title="Epochs of the steps", description="Only for kind `step`.")
    step_factor: float = Field(0.1, gt=0, lt=1, title="Factor of a step", description="Only for kind `step`.")


class TrainingSettings(Settings):
    """The training of one classifier."""

    network: Literal["resnet", "alexnet", "inception_v3", "mobilenet", "vgg"] = Field(
        "resnet", title="Network", description="Its family; `num_layers` says how deep."
    )
    num_layers: int = Field(50, ge=0, title="Layers", description="Depth of the network; 0 where it has only one.")
    width: float = Field(1.0, ge=0.125, le=4, title="Width", description="Factor on a ResNet's channels.")
    image_pixels: int = Field(224, ge=28, le=1024, title="Image size", description="Edge of the crop, in pixels.")
    random_crop_min_area: float = Field(
        0.08, gt=0, le=1, title="Smallest random crop", description="Share of the image's area; 1 keeps whole images."
    )
    random_mirror: bool = Field(True, title="Mirror at random")
    validation_crop: float = Field(
        0.875, gt=0, le=1, title="Validation crop", description="Share of the short edge; 0.875 is 224 of 256 pixels."
    )
    num_epochs: int = Field(
        90, ge=1, le=1000, title="Epochs", description="Times that training goes over all its images."
    )
    batch_size_per_device: int = Field(
        32, ge=1, le=8192, title="Batch size a device", description="The global batch is this × devices × workers."
    )
    optimizer: Literal["sgd", "nag", "adam"] = Field(
        "sgd", title="Optimizer", description="The rule that updates the weights; nag is Nesterov's momentum."
    )
    learning_rate: float = Field(0.1, gt=0, le=100, title="Learning rate", description="For the global batch as it is.")
    momentum: float = Field(0.9, ge=0, lt=1, title="Momentum", description="Not used by adam.")
    weight_decay: float = Field(1e-4, ge=0, lt=1, title="Weight decay")
    schedule: LearningRateSchedule = LearningRateSchedule()
    kv_store: Literal["dist_sync", "dist_device_sync"] = Field(
        "dist_sync", title="Key-value store", description="dist_device_sync adds gradients up on the GPUs first."
    )
    hosts: list[str] = Field(["localhost"], min_length=1, description="Hosts that the processes are dealt to in turn.")
    num_workers: int = Field(1, ge=1, le=4096, title="Workers", description="Worker processes of the whole gang.")
    num_servers: int = Field(1, ge=1, le=4096, title="Servers", description="Parameter servers of the whole gang.")
    devices: list[int] = Field([], description="GPU numbers that each worker uses; empty for the CPU.")
    decode_threads: int = Field(2, ge=1, le=256, description="Threads of a worker that decode images.")

    @model_validator(mode="after")
    def _network_has_that_depth(self) -> Self:
        allowed = NETWORK_LAYERS[self.network]
        if self.num_layers not in allowed:
            raise ValueError(f"num_layers of {self.network} is one of {list(allowed)}, given {self.num_layers}")
        return self

    @model_validator(mode="after")
    def _network_takes_images_of_that_size(self) -> Self:
        least = NETWORK_LEAST_PIXELS[self.network]
        if self.image_pixels < least:
            raise ValueError(f"image_pixels of {self.network} is at least {least}, given {self.image_pixels}")
        return self

    @property
    def global_batch_size(self) -> int:
        return self.batch_size_per_device * max(len(self.devices), 1) * self.num_workers


class DatasetSettings(Settings):
    """One dataset of the catalogue, from its archives to its classifier."""

    name: str = Field(pattern=rf"^{DATASET_NAME.pattern}$", description="The file's name without `.yaml`.")
    title: str = Field(min_length=1, description="One line for people.")
    licence: str | None = Field(None, description="Licence of the images, shown wherever the dataset is.")
    sources: list[SourceSettings] = Field(min_length=1, description="The archives, in order.")
    layout: Literal["class_tars", "class_folders"] = Field(
        description="`class_tars`: a tar of one tar a class; `class_folders`: a tar or a folder of one folder a class."
    )
    synset_names: SourceSettings | None = Field(
        None, description="Table of synset, tab, name, a line each; names are for people only."
    )
    min_images_per_class: int = Field(
        500,
        ge=1,
        title="Images a class needs",
        description="A class is kept when it has at least this many images. The text of MXNet's tutorial says the same "
        "(fewer than 500 go); its shell line keeps only classes with more than 500.",
    )
    validation_per_class: int = Field(
        50, ge=1, title="Validation images a class", description="Taken out of training; smaller than the least class."
    )
    seed: int = Field(0, ge=0, lt=2**63, title="Seed", description="Decides the sample, the order and the training.")
    profile: Literal["fast", "im2rec"] = Field(
        "fast",
        title="Packing profile",
        description="`fast` changes only images that have to change; `im2rec` gives the bytes of MXNet's im2rec.",
    )
    short_edge_pixels: int = Field(480, ge=8, le=8192, title="Short edge", description="Stored images, in pixels.")
    jpeg_quality: int = Field(90, ge=1, le=100, title="JPEG quality", description="Of images that are encoded again.")
    enlarge: bool = Field(
        False,
        title="Enlarge small images",
        description="Up to the short edge, as MXNet's tutorial does; it costs time and bytes and adds no detail. "
        "The profile im2rec always does.",
    )
    check: Literal["decode", "structure"] = Field(
        "decode",
        title="Check of kept images",
        description="`decode` decodes every image; `structure` only follows its markers to the end, for archives that "
        "are trusted and have a checksum. Profile fast only.",
    )
    long_edge_pixels: int = Field(
        65_500,
        ge=8,
        le=65_500,
        title="Long edge at most",
        description="Longer images are skipped; libjpeg's own limit.",
    )
    max_kept_bytes: int = Field(
        2**18, ge=0, title="Bytes of a kept image", description="Larger ones are encoded again. Profile fast only."
    )
    keep_grey: bool = Field(
        True, title="Grey stays grey", description="One channel of JPEG; readers decode it to three. Profile fast only."
    )
    keep_metadata: bool = Field(
        False, title="Keep metadata", description="ICC profile, Exif and comments of kept images. Profile fast only."
    )
    max_seconds_per_image: float = Field(
        60, gt=0, title="Seconds an image", description="An image that takes longer twice to transcode is skipped."
    )
    also_write: list[Literal["webdataset", "parquet"]] = Field(
        [], title="Other formats", description="Each chunk beside RecordIO also as a WebDataset tar or a Parquet file."
    )
    num_chunks: int = Field(8, ge=1, le=MAX_CHUNKS, title="Training chunks", description="Files of training records.")
    target_chunk_bytes: int | None = Field(
        None, ge=2**20, title="Chunk size", description="Bytes of source images a chunk; takes the place of num_chunks."
    )
    max_skipped_fraction: float = Field(
        0.001, ge=0, le=1, title="Skipped at most", description="Of all planned records; more fail `verify`."
    )
    max_skipped_per_class: int = Field(
        20, ge=0, title="Skipped at most of a class", description="Records; more in any class fail `verify`."
    )
    training: TrainingSettings = TrainingSettings()

    @model_validator(mode="after")
    def _classes_keep_training_images(self) -> Self:
        if self.validation_per_class >= self.min_images_per_class:
            raise ValueError(
                f"validation_per_class ({self.validation_per_class}) must be smaller than min_images_per_class "
                f"({self.min_images_per_class}), or a class could be left without training images"
            )
        return self
