"""The composition root: a run's params and this installation's places become what a stage needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_ops.adapters.object_store import open_store
from imagenet_ops.catalogue import load_dataset
from imagenet_ops.deployment import read_deployment
from imagenet_ops.orchestration.trigger_params import read_overrides
from imagenet_ops.progress import LogProgress
from imagenet_ops.stages.stage import StageContext


def build_context(catalogue_file: Path, params: Mapping[str, Any]) -> StageContext:
    """Raises ConfigError for a setting or a param that is not allowed."""
    deployment = read_deployment()
    return StageContext(
        store=open_store(deployment.store_url),
        dataset=load_dataset(catalogue_file, read_overrides(params)),
        progress=LogProgress(),
        trainer_python=deployment.trainer_python,
        num_workers=deployment.num_pack_workers,
    )
