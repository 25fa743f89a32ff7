"""The catalogue: a folder of YAML files, one a dataset, read into checked settings.

dags/datasets/demo.yaml            the file's name is the dataset's name
dags/datasets/imagenet_full.yaml
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from imagenet_ops.errors import ConfigError
from imagenet_ops.settings import DatasetSettings, LearningRateSchedule, SourceSettings, TrainingSettings

# The model that a key opens, to list the known keys beside an unknown one.
_MODEL_UNDER: dict[str, type[BaseModel]] = {
    "sources": SourceSettings,
    "synset_names": SourceSettings,
    "training": TrainingSettings,
    "schedule": LearningRateSchedule,
}


def list_datasets(folder: Path) -> dict[str, Path]:
    """Name and file of every dataset, sorted by name; raises ConfigError where there is no such folder."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such catalogue folder")
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_dataset(folder: Path, name: str) -> Path:
    """The catalogue file of a dataset; raises ConfigError with the list of known ones."""
    known = list_datasets(folder)
    if name not in known:
        raise ConfigError(f"dataset {name!r} is not in {folder}; known: {', '.join(known) or 'none'}")
    return known[name]


def load_dataset(path: Path, overrides: dict[str, Any] | None = None) -> DatasetSettings:
    """The settings in one catalogue file, with `overrides` laid over them.

    `overrides` maps a dotted key (`training.num_epochs`) to a value. Relative source paths become file URLs, seen from
    the file's folder. Raises ConfigError that names the file, every wrong key, what was given and what is allowed.
    """
    values = _read_mapping(path)
    for dotted_key, value in (overrides or {}).items():
        _lay_over(path, values, dotted_key, value)
    if "name" in values:
        raise ConfigError(f"{path}: name: the file's own name is the dataset's; leave the key out")
    values["name"] = path.stem
    try:
        settings = DatasetSettings.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{path}: {_explain(fault)}" for fault in error.errors())) from None
    return _with_absolute_urls(settings, path.parent.resolve())


class _CatalogueLoader(yaml.SafeLoader):
    """Takes `1e-4` for a number, as people and YAML 1.2 do, and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


_CatalogueLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _CatalogueLoader)  # a SafeLoader
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: a mapping of settings is expected, found {type(values).__name__}")
    return values


def _lay_over(path: Path, values: dict[str, Any], dotted_key: str, value: Any) -> None:
    *outer, last = dotted_key.split(".")
    for key in outer:
        inner = values.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{path}: {dotted_key}: can't be laid over {key}, which is {inner!r} and has no keys")
        values = inner
    values[last] = value


def _explain(fault: ErrorDetails) -> str:
    key = ".".join(str(part) for part in fault["loc"]) or "settings"
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key{_suggestion(fault['loc'])}"
    if fault["type"] == "missing":
        return f"{key}: is missing"
    message = fault["msg"].removeprefix("Value error, ")
    given = "" if isinstance(fault["input"], dict) else f", given {fault['input']!r}"
    return f"{key}: {message[:1].lower()}{message[1:]}{given}"


def _suggestion(location: tuple[int | str, ...]) -> str:
    model: type[BaseModel] = DatasetSettings
    for part in location[:-1]:
        model = _MODEL_UNDER.get(str(part), model)
    known = [key for key in model.model_fields if key != "name"]
    close = difflib.get_close_matches(str(location[-1]), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known here: {', '.join(known)}"


def _with_absolute_urls(settings: DatasetSettings, folder: Path) -> DatasetSettings:
    def absolute(source: SourceSettings) -> SourceSettings:
        if "://" in source.url:
            return source
        return source.model_copy(update={"url": (folder / source.url).resolve().as_uri()})

    names = settings.synset_names
    return settings.model_copy(
        update={
            "sources": [absolute(source) for source in settings.sources],
            "synset_names": absolute(names) if names else None,
        }
    )
