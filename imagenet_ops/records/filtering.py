"""records filter: keeps the records that match."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from imagenet_ops.domain.recordio import ImageRecord, unpack_image
from imagenet_ops.errors import DataError
from imagenet_ops.records.id_set import IdSet
from imagenet_ops.records.label_ranges import LabelRanges
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.texts import find_header, format_name
from imagenet_ops.records.writing import RecordWriter

_MAX_DIGITS = 20  # of 2^64 - 1


@dataclass(frozen=True)
class Criteria:
    """What a record must be; None asks for nothing. Of several labels one is enough, to be kept or left out by."""

    labels: LabelRanges | None = None
    not_labels: LabelRanges | None = None
    ids: IdSet | None = None
    min_edge: int | None = None

    def find_fault(self, record: ImageRecord) -> str | None:
        """Why the record is left out."""
        if self.ids is not None and record.record_id not in self.ids:
            return "id"
        if self.labels is not None and not any(label in self.labels for label in record.labels):
            return "label"
        if self.not_labels is not None and any(label in self.not_labels for label in record.labels):
            return "label"
        return self._find_fault_of_size(record.image)

    def _find_fault_of_size(self, image: bytes) -> str | None:
        if self.min_edge is None:
            return None
        header = find_header(image)
        if isinstance(header, str):
            return "no readable image"
        return "edge" if min(header.width, header.height) < self.min_edge else None


def filter_records(
    path: Path, target: Path, reader: RecordReader, outputs: Outputs, criteria: Criteria
) -> tuple[RecordWriter, Counter[str]]:
    """What was kept, and how many records were left out for which reason."""
    left_out: Counter[str] = Counter()
    with outputs, reader.watch("filter", [path]):
        writer = RecordWriter(outputs, target)
        for found in reader.records(path):
            if fault := criteria.find_fault(unpack_image(found.payload, format_name(path))):
                left_out[fault] += 1
            else:
                writer.write(found, path)
    return writer, left_out


def read_ids(path: Path) -> IdSet:
    """The ids that a text file's lines begin with: a plain list, an `.idx` or a `.lst`. Raises DataError."""
    ids = IdSet()
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            first_word = line.split(maxsplit=1)[:1]
            if first_word and not (first_word[0].isdigit() and len(first_word[0]) <= _MAX_DIGITS):
                raise DataError(f"{format_name(path)}: line {number:,}: begins with no record id")
            for word in first_word:
                ids.add(int(word))
    return ids
