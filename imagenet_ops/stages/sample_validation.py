"""sample_validation: the same number of images of every class, taken out of training to validate with.

data/validation.parquet    synset, name
"""

from __future__ import annotations

import logging

import polars as pl

from imagenet_ops.adapters.tables import read_table, write_table
from imagenet_ops.domain.validation_split import choose_validation
from imagenet_ops.manifests import ClassManifest, ImageIndex, SplitManifest
from imagenet_ops.settings import Settings
from imagenet_ops.stages.stage import Stage, StageContext, StageRun

log = logging.getLogger(__name__)
_SCHEMA = {"synset": pl.String, "name": pl.String}


class SampleSettings(Settings):
    """How many, and which."""

    validation_per_class: int
    seed: int


def _read_settings(context: StageContext) -> SampleSettings:
    dataset = context.dataset
    return SampleSettings(validation_per_class=dataset.validation_per_class, seed=dataset.seed)


def _build(run: StageRun[SampleSettings]) -> SplitManifest:
    classes = run.read_input("filter_rare_classes", ClassManifest)
    kept = {entry.synset for entry in classes.kept}
    chosen: list[tuple[str, str]] = []
    with run.context.progress.task("sample_validation", len(kept), "classes") as progress:
        for part in run.read_input("untar", ImageIndex).parts:
            index = read_table(run.store, run.key_of("untar", part.index.key), ["synset", "name"])
            for (synset,), rows in index.group_by("synset", maintain_order=True):
                if synset in kept:
                    names = choose_validation(
                        rows["name"], synset, run.settings.validation_per_class, run.settings.seed
                    )
                    chosen += [(synset, name) for name in names]
                    progress.advance(1)
    num_images = sum(entry.num_images for entry in classes.kept)
    log.info("%d images validate, %d train", len(chosen), num_images - len(chosen))
    return SplitManifest(
        inputs=run.inputs,
        validation=write_table(
            run.store, run.keys, "validation.parquet", pl.DataFrame(chosen, schema=_SCHEMA, orient="row")
        ),
        num_train=num_images - len(chosen),
        num_validation=len(chosen),
    )


STAGE = Stage(
    name="sample_validation",
    version=1,
    title="Sample the validation images of every class",
    manifest=SplitManifest,
    read_settings=_read_settings,
    build=_build,
)
