"""Packs what a list names into a `.rec` and its `.idx`.

{list without .lst}.rec     the records, in the list's order
{list without .lst}.idx     record id, tab, offset: a line a record
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

from imagenet_ops.adapters.im2rec_codec import Im2recCodec
from imagenet_ops.errors import DataError
from imagenet_ops.im2rec.list_files import ListedImage, count_lines, read_list
from imagenet_ops.im2rec.options import Im2recOptions
from imagenet_ops.im2rec.quarantine import Quarantine
from imagenet_ops.packer.items import Batch, Packed, PackItem
from imagenet_ops.packer.messages import Setup
from imagenet_ops.packer.packing import pack_in_order
from imagenet_ops.packer.readers import FolderReader
from imagenet_ops.progress import Progress
from imagenet_ops.records.id_set import IdSet
from imagenet_ops.records.output import OutputFile, Outputs
from imagenet_ops.records.texts import format_count, format_name


class PackedList:
    """The two files under way, and what became of the list's lines."""

    def __init__(self, rec: OutputFile, idx: OutputFile, root: Path, quarantine: Quarantine) -> None:
        self.rec_path, self.reasons = rec.path, quarantine.reasons
        self.num_records = self.num_repeated_ids = 0
        self._rec, self._idx, self._root, self._quarantine = rec, idx, root, quarantine
        self._record_ids = IdSet()

    @property
    def num_skipped(self) -> int:
        return self.reasons.total()

    def add(self, batch: Batch) -> None:
        for item, outcome in zip(batch.items, batch.outcomes, strict=True):
            if isinstance(outcome, Packed):
                self._idx.write(b"%d\t%d\n" % (item.record_id, self._rec.num_bytes + outcome.start))
                self.num_records += 1
                self.num_repeated_ids += not self._record_ids.add(item.record_id)
            else:
                self._quarantine.add_image(item.record_id, item.place, outcome.reason, self._root / item.place)
        self._rec.write(batch.data)


def pack_list(options: Im2recOptions, list_path: Path, progress: Progress) -> PackedList:
    """Writes over an older `.rec` and `.idx`, both at once, where links lead to. What can't be packed is quarantined.

    Raises DataError, and leaves both as they were, where that is more than the options allow.
    """
    with (
        Outputs(inputs=[list_path], force=True) as outputs,
        Quarantine(options.quarantine / list_path.stem) as quarantine,
        progress.task(list_path.stem, count_lines(list_path), "images") as task,
    ):
        idx, rec = (outputs.create(list_path.with_suffix(suffix).resolve()) for suffix in (".idx", ".rec"))
        packed = PackedList(rec, idx, options.root, quarantine)
        items = (_item(options, image) for image in read_list(list_path, quarantine.add_line))
        setup = Setup(FolderReader(options.root), _build_codec(options))
        with closing(pack_in_order(items, setup, max(1, options.num_thread))) as batches:
            for batch in batches:
                packed.add(batch)
                task.advance(len(batch.items))
        _require_enough(options, packed, quarantine)
    return packed


def _item(options: Im2recOptions, image: ListedImage) -> PackItem:
    labels = image.labels if options.pack_label else image.labels[:1]
    return PackItem(image.record_id, labels, image.path, image.path)


def _build_codec(options: Im2recOptions) -> Im2recCodec:
    return Im2recCodec(
        resize=options.resize,
        center_crop=options.center_crop,
        quality=options.quality,
        color=options.color,
        encoding=options.encoding,
        pass_through=options.pass_through,
    )


def _require_enough(options: Im2recOptions, packed: PackedList, quarantine: Quarantine) -> None:
    num_lines = packed.num_records + packed.num_skipped
    if packed.num_skipped > num_lines * options.max_skipped_fraction:
        raise DataError(
            f"{format_name(packed.rec_path)}: not written: {describe_skipped(packed.reasons)} of "
            f"{format_count(num_lines, 'image')}, more than --max-skipped-fraction {options.max_skipped_fraction:g} "
            f"allows; {format_name(quarantine.folder / 'reasons.tsv')} tells which, a larger fraction leaves them out"
        )


def describe_skipped(reasons: Counter[str]) -> str:
    """`3 skipped (2 JPEG cut short, 1 empty)`."""
    counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    return f"{reasons.total():,} skipped ({counts})" if counts else "none skipped"
