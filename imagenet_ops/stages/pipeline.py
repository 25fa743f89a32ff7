"""The pipeline: every stage in order. Each reads what the one before it wrote."""

from __future__ import annotations

from typing import Any

from imagenet_ops.errors import ConfigError
from imagenet_ops.stages import (
    download,
    filter_rare_classes,
    pack_recordio,
    sample_validation,
    train,
    untar,
    verify,
)
from imagenet_ops.stages.stage import MappedStage, Stage

PIPELINE: tuple[Stage[Any, Any] | MappedStage[Any, Any, Any], ...] = (
    download.STAGE,
    untar.STAGE,
    filter_rare_classes.STAGE,
    sample_validation.STAGE,
    pack_recordio.STAGE,
    verify.STAGE,
    train.STAGE,
)
STAGE_NAMES = tuple(stage.name for stage in PIPELINE)


def find_mapped_stage(name: str) -> MappedStage[Any, Any, Any]:
    """Raises ConfigError for any name that is not a mapped stage's."""
    stage = find_stage(name)
    if not isinstance(stage, MappedStage):
        raise ConfigError(f"stage {name}: is not a mapped stage")
    return stage


def find_stage(name: str) -> Stage[Any, Any] | MappedStage[Any, Any, Any]:
    """Raises ConfigError with the list of stages for any other name."""
    for stage in PIPELINE:
        if stage.name == name:
            return stage
    raise ConfigError(f"stage {name!r}: expected one of {', '.join(STAGE_NAMES)}")
