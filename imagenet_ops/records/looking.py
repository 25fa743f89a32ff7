"""The commands of `records` that look into files: ls, cat, show, stats."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from imagenet_ops.errors import ConfigError
from imagenet_ops.records.extraction import extract_images, read_image
from imagenet_ops.records.listing import list_records
from imagenet_ops.records.options import Commands, add_command, add_force, build_reader, file_name, whole_number
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.statistics import collect_statistics, format_statistics
from imagenet_ops.records.texts import format_count, format_name

_MAX_RECORD_ID = 2**64 - 1
_MAX_CELLS = 10_000


def add_ls(commands: Commands) -> None:
    parser = add_command(
        commands, "ls", _ls, "Lists records: offset, id, labels, bytes of the image, its format and size, between tabs."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="of several, the name comes first")
    parser.add_argument("--limit", type=whole_number(1), metavar="N", help="only the first N of each file")


def _ls(options: argparse.Namespace) -> int:
    reader = RecordReader(salvage=options.salvage)  # the lines themselves tell how far it is
    for line in list_records(options.files, reader, limit=options.limit):
        print(line)
    return reader.finish()


def add_cat(commands: Commands) -> None:
    parser = add_command(commands, "cat", _cat, "Extracts images as files, byte for byte.")
    parser.add_argument("file", type=Path, metavar="FILE")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--id", nargs="+", type=whole_number(0, _MAX_RECORD_ID), metavar="N", dest="ids", help="record ids"
    )
    which.add_argument("--all", action="store_true", help="all images")
    parser.add_argument(
        "--to", required=True, metavar="FOLDER", help="<id>_<label>.jpg lands there; - with one id is stdout"
    )
    add_force(parser)


def _cat(options: argparse.Namespace) -> int:
    ids = None if options.all else set(options.ids)
    if options.to == "-":
        if ids is None or len(ids) != 1:
            raise ConfigError("--to -: takes one id, more images need a folder")
        reader = RecordReader(salvage=options.salvage)
        sys.stdout.buffer.write(read_image(options.file, reader, ids.pop()))
        return reader.finish()
    reader = build_reader(options)
    folder = Path(options.to)
    count = extract_images(options.file, folder, reader, ids=ids, force=options.force)
    print(f"{format_name(folder)}: {format_count(count, 'image')}")
    return reader.finish()


def add_show(commands: Commands) -> None:
    parser = add_command(commands, "show", _show, "Draws a contact sheet: thumbnails with their labels.")
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--to", required=True, type=file_name, metavar="SHEET.png")
    parser.add_argument("--count", type=whole_number(1, _MAX_CELLS), default=48, metavar="N", help="default: 48")
    parser.add_argument("--columns", type=whole_number(1, _MAX_CELLS), default=8, metavar="N", help="default: 8")
    parser.add_argument(
        "--seed", type=whole_number(0), metavar="N", help="images drawn by chance, the same for the same N"
    )
    add_force(parser)


def _show(options: argparse.Namespace) -> int:
    from imagenet_ops.records.contact_sheet import draw_contact_sheet

    reader = build_reader(options)
    with Outputs(inputs=[options.file], force=options.force) as outputs:
        file = outputs.create(options.to)
        sheet, cells = draw_contact_sheet(
            options.file, reader, count=options.count, num_columns=options.columns, seed=options.seed
        )
        file.write(sheet)
    num_unreadable = sum(cell.thumbnail is None for cell in cells)
    print(f"{format_name(options.to)}: {format_count(len(cells), 'image')}, {num_unreadable:,} of them unreadable")
    return reader.finish()


def add_stats(commands: Commands) -> None:
    parser = add_command(commands, "stats", _stats, "Counts records, labels, formats and sizes over all files.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="for machines, with the count of every label")


def _stats(options: argparse.Namespace) -> int:
    reader = build_reader(options)
    statistics = collect_statistics(options.files, reader)
    if options.json:
        print(json.dumps(statistics.as_dict(), indent=2))
    else:
        print("\n".join(format_statistics(statistics)))
    return reader.finish()
