"""Copies of images that could not be packed, as a tar for a person to look at.

{reason}/{record id}_{name}      the bytes as they were found
skipped.tsv                      record id, class and name, reason
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from imagenet_ops.adapters.object_store import ObjectWriter
from imagenet_ops.adapters.tar_writer import TarWriter

MAX_BYTES = 2**28
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class QuarantinedImage(NamedTuple):
    """An image and why it is here; `data` is None where it is only to be listed."""

    record_id: int
    name: str
    reason: str
    data: bytes | None


def write_quarantine(writer: ObjectWriter, images: Iterable[QuarantinedImage]) -> None:
    """Copies up to MAX_BYTES; images beyond are listed only."""
    tar = TarWriter(writer)
    lines = []
    for image in images:
        lines.append(f"{image.record_id}\t{_on_one_line(image.name)}\t{image.reason}\n")
        if image.data is not None and tar.num_bytes + len(image.data) <= MAX_BYTES:
            tar.add(f"{_safe(image.reason)[:40]}/{image.record_id}_{_safe(image.name)[-36:]}", image.data)
    tar.add("skipped.tsv", "".join(lines).encode("utf-8", "backslashreplace"))
    tar.finish()


def _safe(name: str) -> str:
    """No path, no blank, nothing that a shell or an unpacker could take for something else."""
    return _UNSAFE.sub("_", name)


def _on_one_line(name: str) -> str:
    return name if name.isprintable() else name.encode("unicode_escape").decode()
