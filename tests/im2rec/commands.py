"""Runs `imagenet-ops im2rec` as the command line does."""

from __future__ import annotations

from imagenet_ops.im2rec.command import run
from imagenet_ops.im2rec.options import parse_options


def run_ours(*arguments: object) -> int:
    return run(parse_options([str(argument) for argument in arguments]))
