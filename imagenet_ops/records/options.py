"""What the commands of `records` have in common: options, types of arguments, and how a command ends."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeAlias

from imagenet_ops.progress import LogProgress, Progress, TerminalProgress
from imagenet_ops.records.reading import RecordReader

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run: TypeAlias = Callable[[argparse.Namespace], int]
EXIT_CODES = (
    "exit codes: 0 all was read, 1 an error, 2 a wrong command line, 3 something was lost (only with --salvage)"
)


def add_command(rooms: Commands, name: str, run: Run, description: str) -> argparse.ArgumentParser:
    parser = rooms.add_parser(
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
    from rich.console import Console

    console = Console(stderr=True)
    progress: Progress = TerminalProgress(console) if console.is_terminal else LogProgress()
    return RecordReader(salvage=options.salvage, progress=progress)


def whole_number(least: int, greatest: int | None = None) -> Callable[[str], int]:
    limits = f"of at least {least}" if greatest is None else f"from {least} to {greatest}"

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else -1
        if number < least or (greatest is not None and number > greatest):
            raise argparse.ArgumentTypeError(f"expected a whole number {limits}, found {text!r}")
        return number

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
