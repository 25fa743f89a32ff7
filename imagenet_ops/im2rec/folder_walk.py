"""The images below a folder, in the order in which im2rec.py numbers them, and the labels of their folders."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from imagenet_ops.errors import ConfigError
from imagenet_ops.records.texts import format_name

log = logging.getLogger(__name__)


class FoundImage(NamedTuple):
    """`path` is relative to the root; a name that is no UTF-8 has its bytes as surrogates."""

    record_id: int
    label: int
    path: str


def find_images(root: Path, exts: Collection[str], recursive: bool) -> tuple[list[FoundImage], list[str]]:
    """All images, and the folder of each label: a folder with an image in it has one, however deep it lies.

    Folders and names go by code points, upper case first, a folder's own images before those of its subfolders. Raises
    ConfigError for links that lead round in a circle; a folder that can't be read is a warning.
    """
    images, folders = list[FoundImage](), list[str]()
    for folder, names in _walk(root, exts, recursive):
        parent = "" if folder == os.curdir else f"{folder}{os.sep}"
        images += [
            FoundImage(record_id, len(folders), f"{parent}{name}") for record_id, name in enumerate(names, len(images))
        ]
        folders.append(folder)
    return images, folders


def _walk(root: Path, exts: Collection[str], recursive: bool) -> Iterator[tuple[str, list[str]]]:
    """(folder relative to the root, names of its images) of each folder that has any."""
    for folder, subfolders, names in os.walk(root, onerror=_warn, followlinks=True):
        images = [name for name in sorted(names) if _is_image(folder, name, exts)]
        if images:
            yield os.path.relpath(folder, root), images
        if not recursive:
            return
        subfolders.sort()
        for name in subfolders:
            _require_no_circle(Path(folder, name))


def _is_image(folder: str, name: str, exts: Collection[str]) -> bool:
    """In strings, as os.walk has them: building a Path of each of a million names takes longer than all the rest."""
    suffix = os.path.splitext(name)[1]  # noqa: PTH122
    return suffix.lower() in exts and os.path.isfile(f"{folder}{os.sep}{name}")  # noqa: PTH113


def _require_no_circle(folder: Path) -> None:
    if folder.is_symlink():
        target = folder.resolve()
        if any(parent.resolve() == target for parent in folder.parents):
            raise ConfigError(
                f"{format_name(folder)}: links to a folder that it lies in; its images would be listed again and again"
            )


def _warn(error: OSError) -> None:
    log.warning("%s: can't be read, its images are not listed: %s", format_name(Path(error.filename)), error.strerror)
