from __future__ import annotations

import pytest

from imagenet_ops.domain.learning_rate import learning_rate_at
from imagenet_ops.settings import LearningRateSchedule


def rates(schedule: LearningRateSchedule, num_epochs: int = 4) -> list[float]:
    """At every step of epochs of two steps, from a base of 8."""
    return [learning_rate_at(step, 2, num_epochs, 8.0, schedule) for step in range(2 * num_epochs)]


def test_a_constant_rate_stays() -> None:
    assert rates(LearningRateSchedule(kind="constant")) == [8.0] * 8


def test_a_step_falls_at_the_first_step_of_its_epoch() -> None:
    schedule = LearningRateSchedule(kind="step", step_epochs=[1, 3], step_factor=0.5)
    assert rates(schedule) == [8, 8, 4, 4, 4, 4, 2, 2]


def test_a_warm_up_rises_in_equal_steps_and_ends_on_the_base() -> None:
    schedule = LearningRateSchedule(kind="constant", warmup_epochs=2)
    assert rates(schedule) == [2, 4, 6, 8, 8, 8, 8, 8]


def test_a_cosine_falls_from_the_base_through_its_half_towards_zero() -> None:
    falling = rates(LearningRateSchedule(kind="cosine"))
    assert falling == sorted(falling, reverse=True)
    assert falling[0] == 8.0
    assert falling[4] == pytest.approx(4.0)
    assert 0 < falling[-1] < 0.5


def test_a_cosine_after_a_warm_up_begins_on_the_base() -> None:
    after = rates(LearningRateSchedule(kind="cosine", warmup_epochs=2))
    assert after[:5] == [2, 4, 6, 8, 8]
    assert after[6] == pytest.approx(4.0)


def test_a_warm_up_as_long_as_the_training_never_falls() -> None:
    assert rates(LearningRateSchedule(kind="cosine", warmup_epochs=4)) == [1, 2, 3, 4, 5, 6, 7, 8]
