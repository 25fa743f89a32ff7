"""Where this installation keeps things, from the environment; the same for the command line and for Airflow's tasks.

IMAGENET_OPS_STORE_URL        the object store        default: file://…/.local/store, seen from the working folder
IMAGENET_OPS_CATALOGUE        the catalogue's folder  default: dags/datasets
IMAGENET_OPS_TRAINER_PYTHON   Python with mxnet       default: .venv-trainer/bin/python
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Deployment:
    """The three places."""

    store_url: str
    catalogue: Path
    trainer_python: Path


def read_deployment(environment: Mapping[str, str] = os.environ, folder: Path | None = None) -> Deployment:
    """What the environment says, and the defaults under `folder` (the working folder) for what it doesn't say."""
    base = (folder or Path.cwd()).resolve()
    return Deployment(
        store_url=environment.get("IMAGENET_OPS_STORE_URL", (base / ".local" / "store").as_uri()),
        catalogue=base / environment.get("IMAGENET_OPS_CATALOGUE", "dags/datasets"),
        trainer_python=base / environment.get("IMAGENET_OPS_TRAINER_PYTHON", ".venv-trainer/bin/python"),
    )
