from __future__ import annotations

from imagenet_ops.domain.class_filter import choose_classes
from imagenet_ops.manifests import DroppedClass, LabelledClass

COUNTS = {"n03": 501, "n01": 500, "n04": 0, "n02": 499, "n00": 700}


def test_a_class_with_exactly_the_least_number_is_kept_and_labels_have_no_gaps() -> None:
    assert choose_classes(COUNTS, {"n01": "tench", "n02": "goldfish"}, 500) == (
        [
            LabelledClass(label=0, synset="n00", name="n00", num_images=700),
            LabelledClass(label=1, synset="n01", name="tench", num_images=500),
            LabelledClass(label=2, synset="n03", name="n03", num_images=501),
        ],
        [
            DroppedClass(synset="n02", name="goldfish", num_images=499),
            DroppedClass(synset="n04", name="n04", num_images=0),
        ],
    )


def test_the_order_of_the_counts_does_not_matter() -> None:
    turned = dict(reversed(COUNTS.items()))
    assert choose_classes(turned, {}, 500) == choose_classes(COUNTS, {}, 500)


def test_no_class_may_be_left() -> None:
    kept, dropped = choose_classes(COUNTS, {}, 701)
    assert (kept, len(dropped)) == ([], 5)


def test_names_of_classes_without_images_are_not_needed() -> None:
    assert choose_classes({}, {"n01": "tench"}, 1) == ([], [])
