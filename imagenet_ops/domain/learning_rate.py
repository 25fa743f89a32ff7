"""The learning rate at every step."""

from __future__ import annotations

import math

from imagenet_ops.settings import LearningRateSchedule


def learning_rate_at(
    step: int, steps_per_epoch: int, num_epochs: int, base: float, schedule: LearningRateSchedule
) -> float:
    """The rate of `step`, counted from 0 over the whole training.

    The warm-up rises in equal steps and ends on `base`. A cosine falls from there to 0 at the last step; a step
    schedule multiplies at the first step of each epoch in `step_epochs`, counted from 0.
    """
    warmup_steps = schedule.warmup_epochs * steps_per_epoch
    if step < warmup_steps:
        return base * (step + 1) / warmup_steps
    if schedule.kind == "cosine":
        num_steps = max(num_epochs * steps_per_epoch - warmup_steps, 1)
        return base * (1 + math.cos(math.pi * (step - warmup_steps) / num_steps)) / 2
    if schedule.kind == "step":
        num_drops = sum(step >= epoch * steps_per_epoch for epoch in schedule.step_epochs)
        return base * schedule.step_factor**num_drops
    return base
