"""What the commands of `records` have in common: options, types of arguments, and how a command ends."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeAlias

from imagenet_ops.progress import choose_progress
from imagenet_ops.records.reading import RecordReader

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run: TypeAlias = Callable[[argparse.Namespace], int]
EXIT_CODES = (
    "exit codes: 0 all was read, 1 an error, 2 a wrong command line, 3 something was lost (only with --salvage)"
)


def add_command(commands: Commands, name: str, run: Run, description: str) -> argparse.ArgumentParser:
    """Its parser, to which its own options are to be added; `run` gives the exit code."""
    parser = commands.add_parser(
        name,
        help=description[0].lower() + description[1:].rstrip("."),
        description=description,
        epilog=EXIT_CODES,
    )
    parser.add_argument("--salvage", action="store_true", help="read on behind damage; exit code 3 if anything is lost")
    parser.set_defaults(run=_ending_quietly(run))
    return parser


def add_force(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="write over files that exist")


def build_reader(options: argparse.Namespace) -> RecordReader:
    return RecordReader(salvage=options.salvage, progress=choose_progress())


def whole_number(least: int, greatest: int = sys.maxsize) -> Callable[[str], int]:
    """An argument's type; without a sign, and no number is too long to be refused."""

    def parse(text: str) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(greatest))
        if not (is_number and least <= int(text) <= greatest):
            raise argparse.ArgumentTypeError(f"expected a whole number from {least} to {greatest}, found {text!r}")
        return int(text)

    return parse


def file_name(text: str) -> Path:
    path = Path(text)
    if text.endswith("/") or path.name in ("", "..", ".rec"):
        raise argparse.ArgumentTypeError(f"expected a file's name, found {text!r}")
    return path


def _ending_quietly(run: Run) -> Run:
    """`records ls … | head` is no error: the reader has seen enough."""

    @wraps(run)
    def run_to_the_end_of_the_pipe(options: argparse.Namespace) -> int:
        try:
            exit_code = run(options)
            print(end="", flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains as it exits
            return 0
        return exit_code

    return run_to_the_end_of_the_pipe
