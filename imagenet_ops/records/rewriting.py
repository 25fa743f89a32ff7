"""The commands of `records` that write record files or their indexes: merge, split, reindex, filter."""

from __future__ import annotations

import argparse
from pathlib import Path

from imagenet_ops.errors import ConfigError
from imagenet_ops.records.filtering import Criteria, filter_records, read_ids
from imagenet_ops.records.label_ranges import LabelRanges
from imagenet_ops.records.merging import merge_records
from imagenet_ops.records.options import Commands, add_command, add_force, build_reader, file_name, whole_number
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.reindexing import reindex_records
from imagenet_ops.records.splitting import split_by_bytes, split_evenly
from imagenet_ops.records.texts import format_count, format_name


def add_merge(commands: Commands) -> None:
    parser = add_command(
        commands, "merge", _merge, "Joins files into OUT.rec and OUT.idx, and OUT.lst where every input has a list."
    )
    parser.add_argument("out", type=file_name, metavar="OUT")
    parser.add_argument("files", nargs="+", type=Path, metavar="IN")
    parser.add_argument("--renumber", action="store_true", help="new record ids from 0 on")
    parser.add_argument("--no-list", action="store_true", help="leave the lists out")
    _add_writing(parser)


def _merge(options: argparse.Namespace) -> int:
    reader = build_reader(options)
    outputs = _build_outputs(options, options.files)
    writer = merge_records(
        options.files, options.out, reader, outputs, renumber=options.renumber, with_list=not options.no_list
    )
    _tell(options, writer.describe())
    return reader.finish()


def add_split(commands: Commands) -> None:
    parser = add_command(
        commands,
        "split",
        _split,
        "Cuts a file into PREFIX_00000.rec and so on, each with its index, in the same order.",
    )
    parser.add_argument("file", type=Path, metavar="IN")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--chunks", type=whole_number(1), metavar="N", help="N chunks of as many records each")
    how.add_argument("--max-bytes", type=whole_number(1), metavar="B", help="chunks of at most B bytes")
    parser.add_argument("--to", required=True, type=file_name, metavar="PREFIX")
    _add_writing(parser)


def _split(options: argparse.Namespace) -> int:
    reader, outputs = build_reader(options), _build_outputs(options, [options.file])
    if options.chunks:
        writers = split_evenly(options.file, options.to, reader, outputs, num_chunks=options.chunks)
    else:
        writers = split_by_bytes(options.file, options.to, reader, outputs, max_bytes=options.max_bytes)
    for writer in writers:
        _tell(options, writer.describe())
    return reader.finish()


def add_reindex(commands: Commands) -> None:
    parser = add_command(commands, "reindex", _reindex, "Writes the index beside each file: record id and offset.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    _add_writing(parser)


def _reindex(options: argparse.Namespace) -> int:
    reader, outputs = build_reader(options), _build_outputs(options, options.files)
    for index, num_records in reindex_records(options.files, reader, outputs):
        _tell(options, f"{format_name(index)}: {format_count(num_records, 'record')}")
    return reader.finish()


def add_filter(commands: Commands) -> None:
    parser = add_command(commands, "filter", _filter, "Keeps the records that match all that is asked for.")
    parser.add_argument("file", type=Path, metavar="IN")
    parser.add_argument("--to", required=True, type=file_name, metavar="OUT")
    parser.add_argument("--labels", type=_label_ranges, metavar="1,2,5-9", help="with one of these labels")
    parser.add_argument("--not-labels", type=_label_ranges, metavar="1,2,5-9", help="with none of these labels")
    parser.add_argument("--ids", type=Path, metavar="FILE", help="ids that a text, an .idx or a .lst begins lines with")
    parser.add_argument("--min-edge", type=whole_number(1), metavar="N", help="both edges of at least N pixels")
    _add_writing(parser)


def _filter(options: argparse.Namespace) -> int:
    asked = (options.labels, options.not_labels, options.ids, options.min_edge)
    if all(value is None for value in asked):
        raise ConfigError("filter: nothing is asked for; --labels, --not-labels, --ids or --min-edge expected")
    criteria = Criteria(
        labels=options.labels,
        not_labels=options.not_labels,
        ids=options.ids and read_ids(options.ids),
        min_edge=options.min_edge,
    )
    reader, outputs = build_reader(options), _build_outputs(options, [options.file])
    writer, left_out = filter_records(options.file, options.to, reader, outputs, criteria)
    _tell(options, writer.describe())
    reasons = "".join(f", {count:,} by {reason}" for reason, count in sorted(left_out.items()))
    print(f"kept {writer.num_records:,}, left out {left_out.total():,}{reasons}")
    return reader.finish()


def _add_writing(parser: argparse.ArgumentParser) -> None:
    add_force(parser)
    parser.add_argument("--dry-run", action="store_true", help="read all, say what would be written, write nothing")


def _build_outputs(options: argparse.Namespace, inputs: list[Path]) -> Outputs:
    return Outputs(inputs=inputs, force=options.force, dry_run=options.dry_run)


def _tell(options: argparse.Namespace, line: str) -> None:
    print(f"would write {line}" if options.dry_run else line)


def _label_ranges(text: str) -> LabelRanges:
    try:
        return LabelRanges(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
