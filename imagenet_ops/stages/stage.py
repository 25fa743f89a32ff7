"""What a stage is, and how one is run: fingerprint, reuse, build, manifest last.

A stage reads one manifest (each manifest leads to the earlier ones) and writes one. A `Stage` does so in one task. A
`MappedStage` does so in three kinds of task: `plan` decides the parts, `build_part` builds one, `finish` adds them up.

    run_stage(context, stage, input_key)                                          → manifest key
    plan_parts(context, stage, input_key) → build_part(… part_key) → finish(…)    → manifest key
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from imagenet_ops import commit
from imagenet_ops.adapters.object_store import ObjectStore, ObjectWriter
from imagenet_ops.keys import StageKeys, part_name
from imagenet_ops.manifests import Lineage, Manifest, ManifestRef, StagePlan, StoredObject, Value, manifest_digest
from imagenet_ops.progress import Progress
from imagenet_ops.settings import DatasetSettings, Settings

S = TypeVar("S", bound=Settings)
M = TypeVar("M", bound=Manifest)
P = TypeVar("P", bound=Value)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageContext:
    """What a stage may use: the store, the dataset's settings, a way to show progress, the trainer's Python.

    `num_workers` is how many processes one part may start for itself.
    """

    store: ObjectStore
    dataset: DatasetSettings
    progress: Progress
    trainer_python: Path
    num_workers: int = 1


@dataclass(frozen=True)
class StageRun(Generic[S]):
    """One stage over one set of inputs and settings: where its output lies, and what decides it."""

    context: StageContext
    keys: StageKeys
    inputs: dict[str, ManifestRef]
    settings: S

    @property
    def store(self) -> ObjectStore:
        return self.context.store

    def key_of(self, stage: str, relative_key: str) -> str:
        """The full key of what an earlier stage's manifest names by a key relative to it."""
        return StageKeys.containing(self.inputs[stage].key).inside(relative_key)

    def stored(self, name: str, writer: ObjectWriter) -> StoredObject:
        """What was written under `keys.data(name)`, for this stage's manifest."""
        return StoredObject(key=f"data/{name}", num_bytes=writer.num_bytes, sha256=writer.sha256())

    def read_input(self, stage: str, kind: type[M]) -> M:
        """The manifest that an earlier stage wrote. Raises ObjectNotFound where it is gone."""
        return commit.read(self.context.store, self.inputs[stage].key, kind)


@dataclass(frozen=True)
class Stage(Generic[S, M]):
    """A stage of one task. `version` is raised whenever the same inputs would give other bytes than before."""

    name: str
    version: int
    title: str
    manifest: type[M]
    read_settings: Callable[[StageContext], S]
    build: Callable[[StageRun[S]], M]


@dataclass(frozen=True)
class MappedStage(Generic[S, M, P]):
    """A stage of many tasks: `plan` names the parts, and must write what they share before it returns.

    Where `parts_use_workers`, a part works on `num_workers` processes of its own; else on one core.
    """

    name: str
    version: int
    title: str
    manifest: type[M]
    part: type[P]
    read_settings: Callable[[StageContext], S]
    plan: Callable[[StageRun[S]], list[str]]
    build_part: Callable[[StageRun[S], str], P]
    finish: Callable[[StageRun[S], list[P]], M]
    parts_use_workers: bool = False


AnyStage = Stage[S, M] | MappedStage[S, M, P]


def locate(context: StageContext, stage: AnyStage[S, M, P], input_key: str | None) -> StageRun[S]:
    """The run of `stage` over the manifest at `input_key`; None only for the first stage."""
    settings = stage.read_settings(context)
    inputs = _inputs(context, input_key)
    fingerprint = commit.fingerprint(
        stage.name,
        stage.version,
        {name: ref.digest for name, ref in inputs.items()},
        settings.model_dump(mode="json"),
    )
    return StageRun(context, StageKeys(context.dataset.name, stage.name, fingerprint), inputs, settings)


def run_stage(context: StageContext, stage: Stage[S, M], input_key: str | None) -> str:
    """Runs a stage of one task, or reuses its output; returns the manifest's key."""
    run = locate(context, stage, input_key)
    return commit.run_once(context.store, run.keys.manifest, stage.manifest, lambda: stage.build(run)).key


def plan_parts(context: StageContext, stage: MappedStage[S, M, P], input_key: str) -> list[str]:
    """The keys of the parts that are still to be built; none where the stage is done."""
    run = locate(context, stage, input_key)
    if context.store.head(run.keys.manifest):
        log.info("%s: reused %s", stage.name, run.keys.manifest)
        return []

    def build() -> StagePlan:
        part_names = stage.plan(run)
        return StagePlan(inputs=run.inputs, settings=run.settings.model_dump(mode="json"), part_names=part_names)

    plan = commit.run_once(context.store, run.keys.plan, StagePlan, build).value
    part_keys = [run.keys.part(name) for name in plan.part_names]
    missing = [key for key in part_keys if not context.store.head(key)]
    log.info("%s: %d parts, %d of them built already", stage.name, len(part_keys), len(part_keys) - len(missing))
    return missing


def build_part(context: StageContext, stage: MappedStage[S, M, P], part_key: str) -> str:
    """Builds one part, or reuses it; its inputs and settings are those of the plan, whatever the catalogue says now."""
    keys = StageKeys.containing(part_key)
    plan = commit.read(context.store, keys.plan, StagePlan)
    settings = stage.read_settings(context).model_validate(plan.settings)
    run = StageRun(context, keys, plan.inputs, settings)
    name = part_name(part_key)
    return commit.run_once(context.store, part_key, stage.part, lambda: stage.build_part(run, name)).key


def finish(context: StageContext, stage: MappedStage[S, M, P], input_key: str) -> str:
    """Adds the parts up and writes the manifest, or reuses it; returns the manifest's key."""
    run = locate(context, stage, input_key)

    def build() -> M:
        plan = commit.read(context.store, run.keys.plan, StagePlan)
        parts = [commit.read(context.store, run.keys.part(name), stage.part) for name in plan.part_names]
        return stage.finish(run, parts)

    return commit.run_once(context.store, run.keys.manifest, stage.manifest, build).key


def _inputs(context: StageContext, input_key: str | None) -> dict[str, ManifestRef]:
    if input_key is None:
        return {}
    data = context.store.get(input_key)
    earlier = Lineage.from_json(input_key, data).inputs
    ref = ManifestRef(key=input_key, digest=manifest_digest(data))
    return {**earlier, StageKeys.containing(input_key).stage: ref}
