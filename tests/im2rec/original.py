"""MXNet's own im2rec.py, out of the wheel in the trainer's environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from imagenet_ops.deployment import read_deployment

REPOSITORY = Path(__file__).parents[2]
# One process for many command lines, for to import mxnet takes longer than to pack.
_RUN_ALL = """
import contextlib, io, json, pathlib, runpy, sys
import mxnet
script = str(pathlib.Path(mxnet.__file__).parent / "tools" / "im2rec.py")
printed = []
for arguments in json.load(sys.stdin):
    sys.argv = [script, *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        runpy.run_path(script, run_name="__main__")
    printed.append(stdout.getvalue())
print(json.dumps(printed))
"""


def run_original(command_lines: Sequence[Sequence[str]]) -> list[str]:
    """What each command line printed. Fails where there is no trainer's Python: equality is not checked by skipping."""
    trainer_python = read_deployment(folder=REPOSITORY).trainer_python
    assert trainer_python.exists(), f"{trainer_python}: no trainer's Python there"
    result = subprocess.run(
        [str(trainer_python), "-W", "ignore", "-c", _RUN_ALL],
        input=json.dumps(command_lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    printed: list[str] = json.loads(result.stdout.splitlines()[-1])
    return printed
