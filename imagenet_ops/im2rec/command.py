"""`imagenet-ops im2rec`: lists, or records of lists, with what im2rec.py would not say."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from imagenet_ops.errors import ConfigError, DataError
from imagenet_ops.im2rec.contradictions import find_contradictions
from imagenet_ops.im2rec.folder_walk import FoundImage, find_images
from imagenet_ops.im2rec.list_files import come_from_one_run, find_lists, read_list
from imagenet_ops.im2rec.listing import PlannedList, find_undecodable, find_unlistable, plan_lists, write_lists
from imagenet_ops.im2rec.options import Im2recOptions, parse_options
from imagenet_ops.progress import Progress, choose_progress
from imagenet_ops.records.options import Commands
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.texts import format_count, format_name

log = logging.getLogger(__name__)
_NUM_EXAMPLES = 5


def add_im2rec_parser(commands: Commands) -> None:
    """Adds `im2rec`, whose arguments go untouched to a parser of its own: nothing in them is an option out here."""
    parser = commands.add_parser(
        "im2rec", help="MXNet's im2rec.py: the same options, the same bytes", prefix_chars="\0", add_help=False
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    parser.set_defaults(run=lambda options: run(parse_options(options.arguments)))


def run(options: Im2recOptions) -> int:
    """Exit code: 0, or 1 where a list's records were not written; then the others still are."""
    for contradiction in find_contradictions(options):
        log.warning("%s", contradiction)
    if not options.root.is_dir():
        raise ConfigError(f"ROOT {format_name(options.root)}: no such folder")
    if options.makes_lists:
        _make_lists(options)
        return 0
    return _pack_lists(options)


def _make_lists(options: Im2recOptions) -> None:
    images, folders = find_images(options.root, options.exts, options.recursive)
    if not images:
        where = "it or below" if options.recursive else "it; --recursive looks into its subfolders too"
        raise ConfigError(f"ROOT {format_name(options.root)}: no name that ends in {' '.join(options.exts)} in {where}")
    lists = plan_lists(images, options)
    if options.dry_run:
        _print_plan(f"{_describe_list(planned)}{_describe_old(planned.path)}" for planned in lists)
    with Outputs(force=True, dry_run=options.dry_run) as outputs:
        write_lists(lists, outputs)
    if not options.dry_run:
        _tell_of_lists(lists, folders if options.recursive else [])
    _warn_of_names(images)
    _warn_of_lists(options.prefix, lists, num_images=len(images))


def _tell_of_lists(lists: Sequence[PlannedList], folders: Sequence[str]) -> None:
    """The folders and their labels go to standard output as im2rec.py has them; names keep their bytes."""
    for planned in lists:
        log.info("%s", _describe_list(planned))
    lines = (f"{folder} {label}\n" for label, folder in enumerate(folders))
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode("".join(lines)))
    sys.stdout.buffer.flush()


def _warn_of_names(images: Sequence[FoundImage]) -> None:
    if paths := find_unlistable(images):
        log.warning(
            "%s will be missed when the lists are packed, for a list can't hold tabs, line ends, or blanks "
            "around a path: %s",
            format_count(len(paths), "image"),
            _name_some(paths),
        )
    if paths := find_undecodable(images):
        log.warning(
            "%s with a name that is no UTF-8, which the lists keep byte for byte; im2rec.py can't read them: %s",
            format_count(len(paths), "image"),
            _name_some(paths),
        )


def _warn_of_lists(prefix: Path, lists: Sequence[PlannedList], num_images: int) -> None:
    if num_left := num_images - sum(len(planned.images) for planned in lists):
        log.warning("%s of %s images are in no list, for shares are rounded down", f"{num_left:,}", f"{num_images:,}")
    if num_empty := sum(not planned.images for planned in lists):
        log.warning("%s without an image", format_count(num_empty, "list"))
    if not prefix.is_dir() and (others := set(find_lists(prefix)) - {planned.path for planned in lists}):
        log.warning("without --list these lists of PREFIX will be packed too: %s", _name_some(sorted(others)))


def _pack_lists(options: Im2recOptions) -> int:
    lists = find_lists(options.prefix)
    if not lists:
        inside = ", which is a folder: the lists inside it are meant" if options.prefix.is_dir() else ""
        raise ConfigError(
            f"PREFIX {format_name(options.prefix)}{inside}: no .lst file begins like this; --list writes one"
        )
    if not come_from_one_run(lists, options.prefix):
        log.warning("these lists are all taken, for they begin with PREFIX: %s", ", ".join(map(format_name, lists)))
    if options.dry_run:
        _print_plan(_describe_packing(list_path) for list_path in lists)
        return 0
    _warn_of_slow_jpeg(options)
    progress = choose_progress()
    return max(_pack_list(options, list_path, progress) for list_path in lists)


def _warn_of_slow_jpeg(options: Im2recOptions) -> None:
    from imagenet_ops.adapters.codec_versions import find_slow_jpeg

    if not options.pass_through and (slow := find_slow_jpeg()):
        log.warning("%s", slow)


def _pack_list(options: Im2recOptions, list_path: Path, progress: Progress) -> int:
    from imagenet_ops.im2rec.packing import describe_skipped, pack_list

    try:
        packed = pack_list(options, list_path, progress)
    except DataError as error:
        log.error("%s", error)
        return 1
    level = logging.WARNING if packed.num_skipped or not packed.num_records else logging.INFO
    name, count = format_name(packed.rec_path), format_count(packed.num_records, "record")
    log.log(level, "%s: %s, %s", name, count, describe_skipped(packed.reasons))
    if packed.num_repeated_ids:
        repeated = format_count(packed.num_repeated_ids, "record")
        log.warning("%s: %s with the id of an earlier one; an index leads to one of them", name, repeated)
    return 0


def _describe_packing(list_path: Path) -> str:
    bad_lines = list[int]()
    num_images = sum(1 for _ in read_list(list_path, lambda number, _: bad_lines.append(number)))
    unreadable = f", {format_count(len(bad_lines), 'line')} that can't be read" if bad_lines else ""
    rec_path = list_path.with_suffix(".rec")
    return f"{format_name(rec_path)}: {format_count(num_images, 'image')}{unreadable}{_describe_old(rec_path)}"


def _describe_list(planned: PlannedList) -> str:
    return f"{format_name(planned.path)}: {format_count(len(planned.images), 'image')}"


def _describe_old(path: Path) -> str:
    return ", in place of the file that is there" if path.exists() else ""


def _print_plan(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"would write {line}")


def _name_some(paths: Sequence[str | Path]) -> str:
    names = ", ".join(format_name(Path(path)) for path in paths[:_NUM_EXAMPLES])
    return names if len(paths) <= _NUM_EXAMPLES else f"{names} …"
