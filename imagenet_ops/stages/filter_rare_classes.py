"""filter_rare_classes: which classes have images enough, and the one label table of those that stay."""

from __future__ import annotations

import logging
from collections import Counter

from imagenet_ops.domain.class_filter import choose_classes
from imagenet_ops.domain.synsets import parse_synset_names
from imagenet_ops.errors import DataError
from imagenet_ops.manifests import ArchiveManifest, ClassManifest, ImageIndex
from imagenet_ops.settings import Settings
from imagenet_ops.stages.stage import Stage, StageContext, StageRun

log = logging.getLogger(__name__)


class FilterSettings(Settings):
    """From how many images on a class is kept."""

    min_images_per_class: int


def _read_settings(context: StageContext) -> FilterSettings:
    return FilterSettings(min_images_per_class=context.dataset.min_images_per_class)


def _build(run: StageRun[FilterSettings]) -> ClassManifest:
    num_images: Counter[str] = Counter()
    for part in run.read_input("untar", ImageIndex).parts:
        num_images.update({count.synset: count.num_images for count in part.classes})
    minimum = run.settings.min_images_per_class
    kept, dropped = choose_classes(num_images, _read_names(run), minimum)
    if not kept:
        most = max(num_images.values(), default=0)
        raise DataError(
            f"{run.keys.dataset}: no class has {minimum:,} images (min_images_per_class); the most is {most:,}"
        )
    log.info("kept %d classes, dropped %d with fewer than %d images", len(kept), len(dropped), minimum)
    return ClassManifest(inputs=run.inputs, kept=kept, dropped=dropped)


def _read_names(run: StageRun[FilterSettings]) -> dict[str, str]:
    table = run.read_input("download", ArchiveManifest).synset_names
    if table is None:
        return {}
    data = run.store.get(run.key_of("download", table.key))
    try:
        return parse_synset_names(data.decode("utf-8"), table.key)
    except UnicodeDecodeError as error:
        raise DataError(f"synset names {table.key}: not UTF-8 at byte {error.start:,}") from None


STAGE = Stage(
    name="filter_rare_classes",
    version=1,
    title="Drop classes with too few images and number the others",
    manifest=ClassManifest,
    read_settings=_read_settings,
    build=_build,
)
