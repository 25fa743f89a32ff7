"""records cat: images out of a record file, byte for byte.

{folder}/{id}_{label}.jpg               .jpg, .png or .bin, by content
{folder}/{id}_{label}_at_{offset}.jpg   where the id was there before
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from imagenet_ops.domain.record_scan import FoundRecord
from imagenet_ops.domain.recordio import ImageRecord, unpack_image
from imagenet_ops.errors import ConfigError, DataError
from imagenet_ops.records.id_set import IdSet
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.payloads import read_record_id
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.texts import find_header, format_label, format_name

_SUFFIXES = {"jpeg": ".jpg", "png": ".png"}
_MAX_LABELS = 4


def extract_images(path: Path, folder: Path, reader: RecordReader, *, ids: set[int] | None, force: bool) -> int:
    """How many images were written: all, or those of `ids`. Makes the folder.

    Raises ConfigError at a file that exists, and DataError at the end if one of `ids` was not found; images written
    before stay.
    """
    seen = IdSet()
    count = 0
    with reader.watch("cat", [path]):
        _make_folder(folder)
        for found, record in _chosen(path, reader, ids):
            name = _name_image(record, found, is_new=seen.add(record.record_id))
            with Outputs(inputs=[path], force=force, sync=False) as outputs:
                outputs.create(folder / name).write(record.image)
            count += 1
    _require_found(path, [record_id for record_id in sorted(ids or ()) if record_id not in seen])
    return count


def read_image(path: Path, reader: RecordReader, record_id: int) -> bytes:
    """The first image with that id. Raises DataError if there is none."""
    with reader.watch("cat", [path]):
        for _, record in _chosen(path, reader, {record_id}):
            return record.image
    raise _not_found(path, [record_id])


def _chosen(path: Path, reader: RecordReader, ids: set[int] | None) -> Iterator[tuple[FoundRecord, ImageRecord]]:
    for found in reader.records(path):
        if ids is None or read_record_id(found.payload) in ids:
            yield found, unpack_image(found.payload, format_name(path))


def _name_image(record: ImageRecord, found: FoundRecord, *, is_new: bool) -> str:
    labels = [*map(format_label, record.labels[:_MAX_LABELS]), *["more"] * (len(record.labels) > _MAX_LABELS)]
    header = find_header(record.image)
    suffix = ".bin" if isinstance(header, str) else _SUFFIXES[header.format]
    place = "" if is_new else f"_at_{found.offset}"
    return f"{record.record_id}_{'_'.join(labels)}{place}{suffix}"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"{format_name(folder)}: a folder expected, found a file") from None


def _require_found(path: Path, missing: list[int]) -> None:
    if missing:
        raise _not_found(path, missing)


def _not_found(path: Path, missing: list[int]) -> DataError:
    shown = ", ".join(map(str, missing[:10])) + ("" if len(missing) <= 10 else f" and {len(missing) - 10:,} more")
    return DataError(f"{format_name(path)}: no record with id {shown}")
