"""records split: one record file becomes several.

{prefix}_00000.rec, .idx      the first records
{prefix}_00001.rec, .idx      those that follow
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path

from imagenet_ops.domain.record_scan import FoundRecord
from imagenet_ops.errors import ConfigError, DataError
from imagenet_ops.records.output import Outputs
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.texts import format_name
from imagenet_ops.records.writing import RecordWriter, companion


def split_evenly(
    path: Path, prefix: Path, reader: RecordReader, outputs: Outputs, *, num_chunks: int
) -> list[RecordWriter]:
    """Chunks of as many records each; the first ones have one more where it does not come out even.

    Reads the file twice: its records have to be counted first. Raises ConfigError for fewer records than chunks.
    """
    with outputs, reader.watch("split", [path, path]):
        others = _claim_chunks(prefix, outputs)
        plan = _plan_chunks(path, reader.count(path), num_chunks)
        return _write_chunks(path, prefix, _pair(path, plan, reader.records(path)), outputs, others)


def split_by_bytes(
    path: Path, prefix: Path, reader: RecordReader, outputs: Outputs, *, max_bytes: int
) -> list[RecordWriter]:
    """Chunks as full as they get. Raises DataError at a record that alone is greater than a chunk may be."""
    with outputs, reader.watch("split", [path]):
        others = _claim_chunks(prefix, outputs)
        return _write_chunks(path, prefix, _group_by_bytes(path, reader, max_bytes), outputs, others)


def _write_chunks(
    path: Path, prefix: Path, records: Iterable[tuple[int, FoundRecord]], outputs: Outputs, others: set[Path]
) -> list[RecordWriter]:
    writers: list[RecordWriter] = []
    for chunk_index, found in records:
        if chunk_index == len(writers):
            if writers:
                writers[-1].finish()
            writers.append(RecordWriter(outputs, prefix.with_name(f"{prefix.name}_{chunk_index:05d}")))
        writers[-1].write(found, path)
    written = {companion(writer.path, suffix) for writer in writers for suffix in (".rec", ".idx", ".lst")}
    for stale in sorted(others - written):
        outputs.remove(stale)
    return writers


def _claim_chunks(prefix: Path, outputs: Outputs) -> set[Path]:
    """All chunks that lie there under the prefix; a reader of `{prefix}_*` would take the last of them for new ones."""
    name = re.compile(rf"{re.escape(prefix.name)}_\d{{5,}}\.(rec|idx|lst)", re.ASCII)
    if not prefix.parent.is_dir():
        raise ConfigError(f"{format_name(prefix)}: its folder does not exist")
    found = {path for path in prefix.parent.iterdir() if name.fullmatch(path.name)}
    outputs.claim(*sorted(found))
    return found


def _plan_chunks(path: Path, num_records: int, num_chunks: int) -> Iterator[int]:
    """The chunk index of each record."""
    if num_chunks > num_records:
        raise ConfigError(f"{format_name(path)}: {num_records:,} records are too few for {num_chunks:,} chunks")
    least, num_greater = divmod(num_records, num_chunks)
    return chain.from_iterable(repeat(index, least + (index < num_greater)) for index in range(num_chunks))


def _pair(path: Path, plan: Iterator[int], records: Iterator[FoundRecord]) -> Iterator[tuple[int, FoundRecord]]:
    try:
        yield from zip(plan, records, strict=True)
    except ValueError:
        raise DataError(f"{format_name(path)}: has changed while it was read") from None


def _group_by_bytes(path: Path, reader: RecordReader, max_bytes: int) -> Iterator[tuple[int, FoundRecord]]:
    """(chunk index, record)."""
    chunk_index = filled = 0
    for found in reader.records(path):
        num_bytes = found.end - found.offset
        if num_bytes > max_bytes:
            raise DataError(
                f"{format_name(path)}: byte {found.offset:,}: a record of {num_bytes:,} bytes; "
                f"--max-bytes allows {max_bytes:,}"
            )
        if filled + num_bytes > max_bytes:
            chunk_index, filled = chunk_index + 1, 0
        filled += num_bytes
        yield chunk_index, found
