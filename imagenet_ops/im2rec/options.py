"""The command line of im2rec.py, and what `imagenet-ops im2rec` has beyond it."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from imagenet_ops.im2rec.old_spellings import find_old_spelling

_DESCRIPTION = """\
With --list: lists the images below ROOT in PREFIX.lst. Without: packs what the lists of PREFIX name into .rec and .idx
files beside them. Lists and records are those of MXNet's im2rec.py to the byte, with the same OpenCV; images that can't
be packed are left out, copied aside and reported.
"""
_EPILOG = """\
exit codes: 0 done, 1 an error, or more images left out than --max-skipped-fraction allows, 2 a wrong command line
"""


@dataclass(frozen=True)
class Im2recOptions:
    """A checked command line. `prefix` is how paths begin: `.lst` or `_0.lst` comes right after it."""

    prefix: Path
    root: Path
    makes_lists: bool
    exts: tuple[str, ...]
    chunks: int
    train_ratio: float
    test_ratio: float
    recursive: bool
    shuffle: bool
    pass_through: bool
    resize: int
    center_crop: bool
    quality: int
    num_thread: int
    color: Literal[-1, 0, 1]
    encoding: Literal[".jpg", ".png"]
    pack_label: bool
    quarantine: Path
    max_skipped_fraction: float
    dry_run: bool


def parse_options(arguments: Sequence[str]) -> Im2recOptions:
    """Exits with code 2 and a message for a wrong command line, as argparse does."""
    values = vars(_Parser(arguments).parse_args(arguments))
    prefix, root = _absolute(values["prefix"]), _absolute(values["root"])
    quarantine = Path(values["quarantine"] or f"{prefix}_quarantine")
    return Im2recOptions(**values | {"prefix": prefix, "root": root, "quarantine": quarantine})


class _Parser(argparse.ArgumentParser):
    """Tells the spelling of today where the command line is one of MXNet 1.0 or older."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(
            "imagenet-ops im2rec",
            description=_DESCRIPTION,
            epilog=_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._arguments = arguments
        self.add_argument("prefix", metavar="PREFIX", help="how the paths of the lists and records begin")
        self.add_argument("root", metavar="ROOT", help="the folder of the images")
        _add_list_options(self.add_argument_group("lists"))
        _add_record_options(self.add_argument_group("records"))
        _add_own_options(self.add_argument_group("beyond im2rec.py"))

    def error(self, message: str) -> NoReturn:
        super().error(find_old_spelling(self._arguments) or message)


def _add_list_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--list", dest="makes_lists", action="store_true", help="write lists; without it, records")
    group.add_argument(
        "--exts",
        nargs="+",
        type=_suffix,
        action=_Suffixes,
        default=(".jpeg", ".jpg", ".png"),
        metavar="EXT",
        help="suffixes of images, in lower case, which matches upper case too (default: .jpeg .jpg .png)",
    )
    group.add_argument(
        "--chunks", type=_whole_number(1), default=1, metavar="N", help="how many lists of one size (default: 1)"
    )
    group.add_argument(
        "--train-ratio",
        type=_share(1e9),
        default=1.0,
        metavar="F",
        help="share for PREFIX_train.lst (default: 1, no split)",
    )
    group.add_argument(
        "--test-ratio", type=_share(1e9), default=0.0, metavar="F", help="share for PREFIX_test.lst (default: 0)"
    )
    group.add_argument(
        "--recursive", action="store_true", help="go into subfolders; each with an image has a label of its own"
    )
    group.add_argument(
        "--no-shuffle",
        dest="shuffle",
        action="store_false",
        help="keep the order of names; else always the same shuffle",
    )


def _add_record_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--pass-through", action="store_true", help="pack the files as they are")
    group.add_argument(
        "--resize", type=_whole_number(0), default=0, metavar="PIXELS", help="the short edge (default: 0, as it is)"
    )
    group.add_argument("--center-crop", action="store_true", help="cut the square in the middle out, before --resize")
    group.add_argument(
        "--quality",
        type=_whole_number(-(2**31)),
        default=95,
        metavar="Q",
        help="JPEG 1 to 100, PNG compression 0 to 9 (default: 95)",
    )
    # Short forms that im2rec.py takes for --quality, and that --quarantine would make ambiguous.
    group.add_argument(
        "--qua", "--qu", "--q", dest="quality", type=_whole_number(-(2**31)), default=95, help=argparse.SUPPRESS
    )
    group.add_argument("--num-thread", type=int, default=1, metavar="N", help="processes that pack (default: 1)")
    group.add_argument(
        "--color",
        type=int,
        default=1,
        choices=[-1, 0, 1],
        help="1 colour, 0 grey, -1 as it is, with alpha and without orientation (default: 1)",
    )
    group.add_argument("--encoding", default=".jpg", choices=[".jpg", ".png"], help="of the images (default: .jpg)")
    group.add_argument("--pack-label", action="store_true", help="pack all labels of a line; else its first")


def _add_own_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--quarantine", metavar="FOLDER", help="for images that can't be packed (default: PREFIX_quarantine)"
    )
    group.add_argument(
        "--max-skipped-fraction",
        type=_share(1),
        default=0.001,
        metavar="F",
        help="of a list's images; more, and its records are not written (default: 0.001)",
    )
    group.add_argument("--dry-run", action="store_true", help="say what would be written, and over what")


class _Suffixes(argparse.Action):
    """Takes suffixes; refuses one in upper case whose images would be missed."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        for suffix in values:
            if suffix.lower() not in values:
                raise argparse.ArgumentError(
                    self, f"{suffix!r} matches no file, for names are compared in lower case; add {suffix.lower()!r}"
                )
        setattr(namespace, self.dest, tuple(values))


def _absolute(text: str) -> Path:
    return Path(os.path.abspath(text))  # noqa: PTH100, for `resolve` would follow links, and `absolute` keeps a `..`


def _suffix(text: str) -> str:
    if os.path.splitext(f"name{text}")[1] != text:  # noqa: PTH122, as the names are cut
        raise argparse.ArgumentTypeError(f"expected the end of a name with its dot, such as '.jpg', found {text!r}")
    return text


def _whole_number(least: int, greatest: int = 2**31 - 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= greatest:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least} to {greatest}, found {text!r}")
        return number

    return parse


def _share(greatest: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 <= number <= greatest:
            raise argparse.ArgumentTypeError(f"expected a number from 0 to {greatest:g}, found {text!r}")
        return number

    return parse
