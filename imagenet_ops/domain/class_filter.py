"""Which classes are kept, and which label each gets."""

from __future__ import annotations

from collections.abc import Mapping

from imagenet_ops.manifests import DroppedClass, LabelledClass


def choose_classes(
    num_images: Mapping[str, int], names: Mapping[str, str], min_images_per_class: int
) -> tuple[list[LabelledClass], list[DroppedClass]]:
    """Kept classes in label order, and dropped ones by synset; a class is kept from `min_images_per_class` on.

    Labels count from 0 in sorted synset order over the kept classes, so a dropped class shifts none.
    """
    kept: list[LabelledClass] = []
    dropped: list[DroppedClass] = []
    for synset in sorted(num_images):
        name, count = names.get(synset, synset), num_images[synset]
        if count >= min_images_per_class:
            kept.append(LabelledClass(label=len(kept), synset=synset, name=name, num_images=count))
        else:
            dropped.append(DroppedClass(synset=synset, name=name, num_images=count))
    return kept, dropped
