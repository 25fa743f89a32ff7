"""What is counted as right."""

from __future__ import annotations

import numpy as np
import pytest

from imagenet_ops.trainer.fit import count_right


def test_loss_and_answers_are_those_of_numpy_by_hand() -> None:
    logits = np.random.default_rng(0).normal(size=(40, 9)).astype(np.float32)
    labels = np.random.default_rng(1).integers(0, 9, 40)
    shares = np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum(axis=1, keepdims=True)
    five_best = np.argsort(-logits, axis=1)[:, :5]
    loss, right, right_in_top, num_images = count_right(logits, labels.astype(np.float32))
    assert loss == pytest.approx(-np.log(shares[range(40), labels]).sum())
    assert right == (logits.argmax(axis=1) == labels).sum()
    assert right_in_top == sum(label in best for label, best in zip(labels, five_best, strict=True))
    assert num_images == 40


def test_a_network_that_answers_the_same_for_every_class_is_right_as_often_as_chance() -> None:
    found = count_right(np.zeros((10, 10), np.float32), np.arange(10, dtype=np.float32))
    assert found[1:].tolist() == [1, 5, 10]


def test_great_logits_do_not_overflow() -> None:
    loss, right, *_ = count_right(np.array([[1e4, 0.0], [-1e4, 1e4]], np.float32), np.array([0, 1], np.float32))
    assert (loss, right) == (0, 2)


def test_logits_that_are_no_numbers_make_a_loss_that_is_none() -> None:
    """By which the training is ended."""
    assert np.isnan(count_right(np.full((2, 3), np.nan, np.float32), np.array([0, 1], np.float32))[0])
