"""Where this installation keeps things, from the environment; the same for the command line and for Airflow's tasks.

IMAGENET_OPS_STORE_URL        the object store        default: file://…/.local/store, seen from the working folder
IMAGENET_OPS_CATALOGUE        the catalogue's folder  default: dags/datasets
IMAGENET_OPS_TRAINER_PYTHON   Python with mxnet       default: .venv-trainer/bin/python
IMAGENET_OPS_PACK_WORKERS     processes that a task   default: half of this machine's cores, for several chunks are
                              packs a chunk with               packed at once
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_ops.errors import ConfigError


@dataclass(frozen=True)
class Deployment:
    """The three places, and how much of the machine a task takes."""

    store_url: str
    catalogue: Path
    trainer_python: Path
    num_pack_workers: int


def read_deployment(environment: Mapping[str, str] = os.environ, folder: Path | None = None) -> Deployment:
    """What the environment says, and the defaults under `folder` (the working folder) for what it doesn't say."""
    base = (folder or Path.cwd()).resolve()
    num_workers = environment.get("IMAGENET_OPS_PACK_WORKERS", str(max(1, (os.cpu_count() or 1) // 2)))
    if not num_workers.isdigit() or int(num_workers) < 1:
        raise ConfigError(f"IMAGENET_OPS_PACK_WORKERS: a whole number of at least 1 expected, given {num_workers!r}")
    return Deployment(
        store_url=environment.get("IMAGENET_OPS_STORE_URL", (base / ".local" / "store").as_uri()),
        catalogue=base / environment.get("IMAGENET_OPS_CATALOGUE", "dags/datasets"),
        trainer_python=base / environment.get("IMAGENET_OPS_TRAINER_PYTHON", ".venv-trainer/bin/python"),
        num_pack_workers=int(num_workers),
    )
