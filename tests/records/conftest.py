"""The commands as a shell calls them, in an empty folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from imagenet_ops.errors import ImagenetOpsError
from imagenet_ops.records.commands import add_records_parser


class Result(NamedTuple):
    """What a command left behind; log lines are not in it."""

    exit_code: int
    out: str
    err: str


Records = Callable[..., Result]


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Records:
    """Runs `imagenet-ops records …`; the current folder is `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser(prog="imagenet-ops")
    add_records_parser(parser.add_subparsers(required=True))

    def run(*arguments: object) -> Result:
        options = parser.parse_args(["records", *map(str, arguments)])
        try:
            exit_code = options.run(options)
        except ImagenetOpsError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            exit_code = 1
        return Result(exit_code, *capsys.readouterr())

    return run
