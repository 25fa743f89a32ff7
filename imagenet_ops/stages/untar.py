"""untar: every image of the archives as a byte range; nothing is unpacked.

`plan` walks the archives' own headers and deals the classes out to groups; each part looks into one group's members and
tells images by content; `finish` adds them up.

    data/group_00000.parquet      what a part reads: synset, name, archive, offset, num_bytes, kind
    data/index_00000.parquet      its images: synset, name, archive, offset, num_bytes, format, width, height
    data/rejected_00000.parquet   its other members: synset, name, archive, offset, num_bytes, reason

`archive` is the position in ArchiveManifest.archives, offsets are into that object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

import polars as pl

from imagenet_ops.adapters.block_reader import BlockReader
from imagenet_ops.adapters.tables import read_table, write_table
from imagenet_ops.domain.image_header import ImageHeader, NotAnImage, read_image_header
from imagenet_ops.domain.synsets import synset_of_archive, synset_of_folder
from imagenet_ops.domain.tar_index import BLOCK_BYTES, ReadAt, TarMember, is_tar, iterate_members
from imagenet_ops.errors import DataError
from imagenet_ops.manifests import ArchiveManifest, ClassCount, ImageIndex, IndexPart, StoredObject
from imagenet_ops.settings import Settings
from imagenet_ops.stages.stage import MappedStage, StageContext, StageRun

# 21,841 classes make 171 tasks: enough to spread, few enough that a task's own cost of a second does not count.
CLASSES_PER_GROUP = 128

_PLACE = {"synset": pl.String, "name": pl.String, "archive": pl.UInt16, "offset": pl.UInt64, "num_bytes": pl.UInt64}
_GROUP = _PLACE | {"kind": pl.String}
_INDEX = _PLACE | {"format": pl.String, "width": pl.UInt32, "height": pl.UInt32}
_REJECTED = _PLACE | {"reason": pl.String}


class UntarSettings(Settings):
    """How the archives are laid out."""

    layout: Literal["class_tars", "class_folders"]


class Row(NamedTuple):
    """One line of a group: a class's tar, a member, or something that is neither (`kind` says what)."""

    synset: str
    name: str
    archive: int
    offset: int
    num_bytes: int
    kind: str


def _read_settings(context: StageContext) -> UntarSettings:
    return UntarSettings(layout=context.dataset.layout)


def _plan(run: StageRun[UntarSettings]) -> list[str]:
    archives = run.read_input("download", ArchiveManifest).archives
    rows: list[Row] = []
    with run.context.progress.task("untar: archives", None, "members") as progress:
        for position, archive in enumerate(archives):
            for row in _rows_of_archive(run, position, archive):
                rows.append(row)
                progress.advance(1)
    synsets = sorted({row.synset for row in rows})
    if not any(synsets):
        raise DataError(f"{run.keys.dataset}: the archives hold no class at all in layout {run.settings.layout}")
    group_of = {synset: index // CLASSES_PER_GROUP for index, synset in enumerate(synsets)}
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(group_of[row.synset], []).append(row)
    for group, members in groups.items():
        write_table(
            run.store, run.keys, f"group_{group:05d}.parquet", pl.DataFrame(members, schema=_GROUP, orient="row")
        )
    return [f"{group:05d}" for group in sorted(groups)]


def _rows_of_archive(run: StageRun[UntarSettings], position: int, archive: StoredObject) -> Iterator[Row]:
    read_at = _reader(run, archive)
    name = f"archive {archive.key}"
    if not is_tar(read_at(0, BLOCK_BYTES)):
        raise DataError(f"{name}: expected an uncompressed tar, found something else in its first {BLOCK_BYTES} bytes")
    for member in iterate_members(read_at, 0, archive.num_bytes, name):
        if member.kind == "folder":
            continue
        if run.settings.layout == "class_tars":
            yield _row_of_class_tar(read_at, member, position)
        else:
            yield _row_of_file(member, position)


def _row_of_class_tar(read_at: ReadAt, member: TarMember, position: int) -> Row:
    whole = member.kind == "file" and is_tar(read_at(member.offset, min(BLOCK_BYTES, member.num_bytes)))
    kind = "class tar" if whole else "not a class tar"
    synset = synset_of_archive(member.name) if whole else ""
    return Row(synset, member.name, position, member.offset, member.num_bytes, kind)


def _row_of_file(member: TarMember, position: int) -> Row:
    place = synset_of_folder(member.name)
    if place is None:
        return Row("", member.name, position, member.offset, member.num_bytes, "in no class folder")
    return Row(*place, position, member.offset, member.num_bytes, member.kind)


def _build_part(run: StageRun[UntarSettings], name: str) -> IndexPart:
    archives = run.read_input("download", ArchiveManifest).archives
    readers = [_reader(run, archive) for archive in archives]
    group = read_table(run.store, run.keys.data(f"group_{name}.parquet"))
    looked_at: list[tuple[Row, ImageHeader | NotAnImage]] = []
    with run.context.progress.task(f"untar {name}", len(group), "entries") as progress:
        for entry in map(Row._make, group.iter_rows()):
            looked_at += [(row, _look_at(readers, row)) for row in _members(readers, entry)]
            progress.advance(1)
    last = {(row.synset, row.name): position for position, (row, _) in enumerate(looked_at)}
    images: list[tuple[object, ...]] = []
    rejected: list[tuple[object, ...]] = []
    for position, (row, found) in enumerate(looked_at):
        place = row[:5]
        if last[row.synset, row.name] != position:
            rejected.append((*place, "replaced by a later member of the same name"))
        elif isinstance(found, NotAnImage):
            rejected.append((*place, str(found)))
        else:
            images.append((*place, found.format, found.width, found.height))
    index = pl.DataFrame(images, schema=_INDEX, orient="row").sort("synset", "name")
    left_out = pl.DataFrame(rejected, schema=_REJECTED, orient="row").sort("synset", "name", "archive", "offset")
    return IndexPart(
        index=write_table(run.store, run.keys, f"index_{name}.parquet", index),
        rejected=write_table(run.store, run.keys, f"rejected_{name}.parquet", left_out),
        classes=_count_classes(group["synset"].unique().to_list(), images, rejected),
        num_rejected_by_reason=dict(sorted(Counter(str(row[-1]) for row in rejected).items())),
    )


def _look_at(readers: list[ReadAt], row: Row) -> ImageHeader | NotAnImage:
    if row.kind != "file":
        return NotAnImage(row.kind)
    try:
        return read_image_header(_within(readers[row.archive], row))
    except NotAnImage as reason:
        return reason


def _members(readers: list[ReadAt], row: Row) -> Iterator[Row]:
    """The members of a class tar; any other row is its own."""
    if row.kind != "class tar":
        yield row
        return
    for member in iterate_members(readers[row.archive], row.offset, row.num_bytes, f"class tar {row.name}"):
        if member.kind != "folder":
            name = member.name.removeprefix("./")
            yield Row(row.synset, name, row.archive, member.offset, member.num_bytes, member.kind)


def _count_classes(
    synsets: list[str], images: list[tuple[object, ...]], rejected: list[tuple[object, ...]]
) -> list[ClassCount]:
    num_images, num_rejected = Counter(row[0] for row in images), Counter(row[0] for row in rejected)
    return [
        ClassCount(synset=synset, num_images=num_images[synset], num_rejected=num_rejected[synset])
        for synset in sorted(synsets)
        if synset
    ]


def _finish(run: StageRun[UntarSettings], parts: list[IndexPart]) -> ImageIndex:
    reasons: Counter[str] = Counter()
    for part in parts:
        reasons.update(part.num_rejected_by_reason)
    return ImageIndex(
        inputs=run.inputs,
        parts=parts,
        num_images=sum(count.num_images for part in parts for count in part.classes),
        num_rejected_by_reason=dict(sorted(reasons.items())),
    )


def _reader(run: StageRun[UntarSettings], archive: StoredObject) -> ReadAt:
    return BlockReader(run.store, run.key_of("download", archive.key)).read


def _within(read_at: ReadAt, row: Row) -> ReadAt:
    def read(offset: int, num_bytes: int) -> bytes:
        left = max(0, row.num_bytes - offset)
        return read_at(row.offset + offset, min(num_bytes, left)) if left else b""

    return read


STAGE = MappedStage(
    name="untar",
    version=1,
    title="Index every image of the archives as a byte range",
    manifest=ImageIndex,
    part=IndexPart,
    read_settings=_read_settings,
    plan=_plan,
    build_part=_build_part,
    finish=_finish,
)
