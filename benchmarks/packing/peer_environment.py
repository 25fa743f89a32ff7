"""Other projects' packers in an environment of their own, made when the first of them is measured.

    .local/bench/peers/

torch is left out: it is 6 GB with its CUDA, img2dataset and webdataset run without, and streaming's writer needs only
that its name can be imported.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

FOLDER = Path(".local/bench/peers").absolute()
_PACKAGES = ("img2dataset==1.47.0", "mosaicml-streaming==0.13.0", "webdataset==0.2.111")
_EXCLUDED = ("torch", "torchvision")


class NoPeers(Exception):
    """The environment can't be made here."""


def peer_command(name: str) -> Path:
    """A command of the environment. Raises NoPeers."""
    _prepare()
    return FOLDER / "bin" / name


@cache
def _prepare() -> None:
    ready = FOLDER / ".ready"
    if ready.exists() and ready.read_text() == repr(_PACKAGES):
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        uv = Path(".local/uv").read_text().strip()
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, FOLDER], check=True)
        excludes = FOLDER / "excludes.txt"
        excludes.write_text("\n".join(_EXCLUDED))
        python = FOLDER / "bin/python"
        subprocess.run([uv, "pip", "install", "-q", "--python", python, "--excludes", excludes, *_PACKAGES], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoPeers(f"{', '.join(_PACKAGES)} can't be installed: {error}") from error
    ready.write_text(repr(_PACKAGES))
