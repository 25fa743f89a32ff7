"""`imagenet-ops records`: all its commands under one name."""

from __future__ import annotations

import argparse

from imagenet_ops.records.looking import add_cat, add_ls, add_show, add_stats
from imagenet_ops.records.options import EXIT_CODES, Commands
from imagenet_ops.records.rewriting import add_filter, add_merge, add_reindex, add_split

_DESCRIPTION = "Looks into RecordIO files of images, with or without an index, whoever wrote them, and rewrites them."
_EPILOG = f"""\
A damaged file ends a command at its first damage. With --salvage the command tells each lost range on stderr and goes
on at the next whole record.

Outputs appear under their names when they are complete; what exists is written over only with --force.
A name that begins with a dash goes behind -- or is written as ./-name.

{EXIT_CODES}
"""


def add_records_parser(commands: Commands) -> None:
    """Adds `records` with its own commands; each has as `run` a function that gives the exit code."""
    parser = commands.add_parser(
        "records",
        help="look into and rewrite .rec files",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_ls, add_cat, add_show, add_stats, add_merge, add_split, add_reindex, add_filter):
        add(inner)
