"""Packs what a list names into a `.rec` and its `.idx`.

{list without .lst}.rec     the records, in the list's order
{list without .lst}.idx     record id, tab, offset: a line a record
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from imagenet_ops.adapters.im2rec_codec import Im2recCodec
from imagenet_ops.adapters.unusable_image import UnusableImage
from imagenet_ops.domain.recordio import ImageRecord, encode_record, pack_image
from imagenet_ops.errors import DataError
from imagenet_ops.im2rec.list_files import ListedImage, read_list
from imagenet_ops.im2rec.options import Im2recOptions
from imagenet_ops.im2rec.quarantine import Quarantine
from imagenet_ops.records.id_set import IdSet
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.texts import format_count, format_name


@dataclass
class PackedList:
    """What became of a list's lines."""

    rec_path: Path
    reasons: Counter[str]
    num_records: int = 0
    num_repeated_ids: int = 0

    @property
    def num_skipped(self) -> int:
        return self.reasons.total()


def pack_list(options: Im2recOptions, list_path: Path) -> PackedList:
    """Writes over an older `.rec` and `.idx`, both at once. What can't be packed is quarantined.

    Raises DataError, and leaves both as they were, where that is more than the options allow.
    """
    codec = _build_codec(options)
    with (
        Outputs(inputs=[list_path], force=True) as outputs,
        Quarantine(options.quarantine / list_path.stem) as quarantine,
    ):
        idx, rec = (outputs.create(list_path.with_suffix(suffix)) for suffix in (".idx", ".rec"))
        packed = PackedList(rec.path, quarantine.reasons)
        record_ids = IdSet()
        for image in read_list(list_path, quarantine.add_line):
            if encoded := _pack_image(options, codec, image, quarantine):
                idx.write(b"%d\t%d\n" % (image.record_id, rec.num_bytes))
                rec.write(encoded)
                packed.num_records += 1
                packed.num_repeated_ids += not record_ids.add(image.record_id)
        _require_enough(options, packed, quarantine)
    return packed


def _build_codec(options: Im2recOptions) -> Im2recCodec:
    return Im2recCodec(
        resize=options.resize,
        center_crop=options.center_crop,
        quality=options.quality,
        color=options.color,
        encoding=options.encoding,
        pass_through=options.pass_through,
    )


def _pack_image(options: Im2recOptions, codec: Im2recCodec, image: ListedImage, quarantine: Quarantine) -> bytes | None:
    """The record's bytes in the file; None for an image that went into quarantine."""
    data = None
    try:
        data = _read_file(options.root / image.path)
        labels = image.labels if options.pack_label else image.labels[:1]
        return encode_record(pack_image(ImageRecord(image.record_id, labels, codec.transcode(data))))
    except UnusableImage as reason:
        quarantine.add_image(image, str(reason), data)
    except DataError:
        quarantine.add_image(image, "too large for a record", data)
    return None


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnusableImage(f"file can't be read: {error.strerror}") from error


def _require_enough(options: Im2recOptions, packed: PackedList, quarantine: Quarantine) -> None:
    num_lines = packed.num_records + packed.num_skipped
    if packed.num_skipped > num_lines * options.max_skipped_fraction:
        raise DataError(
            f"{format_name(packed.rec_path)}: not written: {describe_skipped(packed.reasons)} of "
            f"{format_count(num_lines, 'image')}, more than --max-skipped-fraction {options.max_skipped_fraction:g} "
            f"allows; {format_name(quarantine.folder)} tells which"
        )


def describe_skipped(reasons: Counter[str]) -> str:
    """`3 skipped (2 JPEG cut short, 1 empty)`."""
    counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    return f"{reasons.total():,} skipped ({counts})" if counts else "none skipped"
