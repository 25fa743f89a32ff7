"""The trigger form: the settings that a person may change for one run, with the catalogue's value as default.

Titles, descriptions and bounds are those of `settings.py`. The few that matter stand open; the others lie in sections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

from imagenet_ops.errors import ConfigError
from imagenet_ops.settings import DatasetSettings, Settings

_OPEN, _DATA, _TRAINING = None, "Stored images", "Training"

# Form key → (dotted path in the settings, section).
_FORM: dict[str, tuple[str, str | None]] = {
    "min_images_per_class": ("min_images_per_class", _OPEN),
    "validation_per_class": ("validation_per_class", _OPEN),
    "num_epochs": ("training.num_epochs", _OPEN),
    "profile": ("profile", _DATA),
    "short_edge_pixels": ("short_edge_pixels", _DATA),
    "jpeg_quality": ("jpeg_quality", _DATA),
    "enlarge": ("enlarge", _DATA),
    "check": ("check", _DATA),
    "num_chunks": ("num_chunks", _DATA),
    "max_skipped_fraction": ("max_skipped_fraction", _DATA),
    "max_skipped_per_class": ("max_skipped_per_class", _DATA),
    "seed": ("seed", _DATA),
    "network": ("training.network", _TRAINING),
    "num_layers": ("training.num_layers", _TRAINING),
    "image_pixels": ("training.image_pixels", _TRAINING),
    "batch_size_per_device": ("training.batch_size_per_device", _TRAINING),
    "optimizer": ("training.optimizer", _TRAINING),
    "learning_rate": ("training.learning_rate", _TRAINING),
    "num_workers": ("training.num_workers", _TRAINING),
    "num_servers": ("training.num_servers", _TRAINING),
}


def build_params(settings: DatasetSettings) -> dict[str, Param]:
    """The form's fields in order."""
    return {key: _build_param(settings, path, section) for key, (path, section) in _FORM.items()}


def read_overrides(params: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted settings paths and values of a run's params. Raises ConfigError for a key that the form does not have."""
    if unknown := sorted(set(params) - set(_FORM)):
        raise ConfigError(f"unknown parameter {', '.join(unknown)}; known: {', '.join(_FORM)}")
    return {_FORM[key][0]: value for key, value in params.items()}


def _build_param(settings: DatasetSettings, path: str, section: str | None) -> Param:
    owner: Settings = settings
    *outer, last = path.split(".")
    for name in outer:
        owner = getattr(owner, name)
    field = type(owner).model_fields[last]
    schema = type(owner).model_json_schema()["properties"][last]
    rules: dict[str, Any] = {key: schema[key] for key in schema if key not in ("default", "title", "description")}
    if section is not None:
        rules["section"] = section
    return Param(
        getattr(owner, last),
        title=field.title,
        description=field.description,
        **rules,
    )
