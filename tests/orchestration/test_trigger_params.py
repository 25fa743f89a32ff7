"""The trigger form's values become overrides of the settings, or a clear error."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

# Airflow writes its configuration where it is imported first: not into the user's home.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="imagenet_ops_test_airflow_"))

from imagenet_ops.catalogue import load_dataset
from imagenet_ops.errors import ConfigError
from imagenet_ops.orchestration.trigger_params import build_params, read_overrides

DEMO = Path(__file__).parents[2] / "dags" / "datasets" / "demo.yaml"


def defaults() -> dict[str, Any]:
    return {key: param.value for key, param in build_params(load_dataset(DEMO)).items()}


def test_the_forms_defaults_change_nothing() -> None:
    assert load_dataset(DEMO, read_overrides(defaults())) == load_dataset(DEMO)


def test_every_field_reaches_its_setting() -> None:
    settings = load_dataset(DEMO, read_overrides({"num_epochs": 3, "jpeg_quality": 80, "learning_rate": 1}))
    assert (settings.training.num_epochs, settings.jpeg_quality, settings.training.learning_rate) == (3, 80, 1.0)


def test_a_field_that_the_form_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(ConfigError, match=r"unknown parameter epochs; known: min_images_per_class, .*, num_servers$"):
        read_overrides({**defaults(), "epochs": 3})


def test_a_value_out_of_bounds_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"training\.num_epochs: input should be greater than or equal to 1, given 0"):
        load_dataset(DEMO, read_overrides({"num_epochs": 0}))
