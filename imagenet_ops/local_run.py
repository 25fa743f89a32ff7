"""The pipeline without Airflow: stages one after the other, the parts of a mapped stage on all cores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from imagenet_ops.errors import ConfigError
from imagenet_ops.part_pool import build_parts
from imagenet_ops.stages.pipeline import PIPELINE, find_stage
from imagenet_ops.stages.stage import MappedStage, StageContext, build_part, finish, locate, plan_parts, run_stage

_LEAST_PARTS_FOR_POOL = 4  # a process of the pool takes a second to start, in which a part of 128 classes may be done


@dataclass(frozen=True)
class StageOutcome:
    """What became of one stage; `manifest_key` is None where its input does not exist yet."""

    stage: str
    manifest_key: str | None
    done: bool
    seconds: float = 0.0


def look_ahead(context: StageContext) -> Iterator[StageOutcome]:
    """What a run would reuse (`done`) and what it would build, without writing anything."""
    key: str | None = None
    known = True
    for stage in PIPELINE:
        if known:
            key = locate(context, stage, key).keys.manifest
            known = context.store.head(key) is not None
            yield StageOutcome(stage.name, key, done=known)
        else:
            yield StageOutcome(stage.name, None, done=False)


def run_pipeline(context: StageContext, last_stage: str, jobs: int) -> Iterator[StageOutcome]:
    """Runs every stage up to `last_stage`, parts on `jobs` processes; `done` says that it was there already."""
    find_stage(last_stage)
    key: str | None = None
    for stage in PIPELINE:
        start = time.monotonic()
        key, reused = _run_one(context, stage, key, jobs)
        yield StageOutcome(stage.name, key, reused, time.monotonic() - start)
        if stage.name == last_stage:
            return


def run_single(context: StageContext, stage_name: str, jobs: int) -> StageOutcome:
    """Runs one stage. Raises ConfigError, naming it, where an earlier stage has not run yet."""
    wanted = find_stage(stage_name)
    key: str | None = None
    for outcome in look_ahead(context):
        if outcome.stage == wanted.name:
            break
        if not outcome.done:
            raise ConfigError(f"stage {wanted.name}: {outcome.stage} has not run with these settings yet; run it first")
        key = outcome.manifest_key
    start = time.monotonic()
    manifest_key, reused = _run_one(context, wanted, key, jobs)
    return StageOutcome(wanted.name, manifest_key, reused, time.monotonic() - start)


def _run_one(context: StageContext, stage: Any, input_key: str | None, jobs: int) -> tuple[str, bool]:
    reused = context.store.head(locate(context, stage, input_key).keys.manifest) is not None
    if not isinstance(stage, MappedStage):
        return run_stage(context, stage, input_key), reused
    assert input_key is not None  # only the first stage has no input, and it is not mapped
    parts = plan_parts(context, stage, input_key)
    context = replace(context, num_workers=jobs)
    if stage.parts_use_workers or jobs == 1 or len(parts) < _LEAST_PARTS_FOR_POOL:
        for part in parts:
            build_part(context, stage, part)
    else:
        build_parts(context, stage.name, parts, jobs)
    return finish(context, stage, input_key), reused
