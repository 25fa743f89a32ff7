from __future__ import annotations

import random

from imagenet_ops.domain.validation_split import choose_validation

NAMES = [f"n01_{index}.JPEG" for index in range(400)]


def test_the_choice_never_changes() -> None:
    assert choose_validation(NAMES, "n01", 5, seed=0) == [
        "n01_16.JPEG",
        "n01_276.JPEG",
        "n01_29.JPEG",
        "n01_308.JPEG",
        "n01_51.JPEG",
    ]


def test_the_order_of_the_names_does_not_matter() -> None:
    shuffled = random.Random(1).sample(NAMES, len(NAMES))
    assert choose_validation(iter(shuffled), "n01", 50, seed=0) == choose_validation(NAMES, "n01", 50, seed=0)


def test_the_chosen_are_sorted_distinct_and_as_many_as_asked() -> None:
    chosen = choose_validation(NAMES, "n01", 50, seed=0)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == 50
    assert set(chosen) < set(NAMES)


def test_one_more_image_changes_at_most_one() -> None:
    before = set(choose_validation(NAMES, "n01", 50, seed=0))
    changes = []
    for index in range(200):
        after = set(choose_validation([*NAMES, f"new_{index}.JPEG"], "n01", 50, seed=0))
        assert after - before <= {f"new_{index}.JPEG"}
        changes.append(len(before - after))
    assert set(changes) == {0, 1}


def test_one_image_less_changes_at_most_one() -> None:
    before = set(choose_validation(NAMES, "n01", 50, seed=0))
    for gone in NAMES:
        after = set(choose_validation([name for name in NAMES if name != gone], "n01", 50, seed=0))
        assert len(after - before) == (1 if gone in before else 0)


def test_another_seed_or_class_chooses_others() -> None:
    choices = [
        tuple(choose_validation(NAMES, synset, 50, seed)) for synset, seed in (("n01", 0), ("n01", 1), ("n02", 0))
    ]
    assert len(set(choices)) == 3


def test_fewer_images_than_asked_are_all_chosen() -> None:
    assert choose_validation(["b", "a"], "n01", 50, seed=0) == ["a", "b"]
