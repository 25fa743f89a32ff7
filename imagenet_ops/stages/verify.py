"""verify: reads every record of every chunk back, holds it against the plan, and reports on the dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

from imagenet_ops.adapters.sequential_reader import SequentialReader
from imagenet_ops.adapters.tables import read_table
from imagenet_ops.domain.image_header import NotAnImage, read_image_header
from imagenet_ops.domain.image_list import parse_list_line
from imagenet_ops.domain.recordio import ImageRecord, iterate_records, unpack_image
from imagenet_ops.errors import DataError
from imagenet_ops.manifests import (
    Chunk,
    DatasetManifest,
    DatasetReport,
    StoredObject,
)
from imagenet_ops.progress import Task
from imagenet_ops.settings import Settings
from imagenet_ops.stages.dataset_report import Found, build_report, count_skipped, count_skipped_by_class
from imagenet_ops.stages.stage import Stage, StageContext, StageRun

T = TypeVar("T")
_MAX_LISTED = 20


class VerifySettings(Settings):
    """How much may be missing; everything else is read and must be as planned."""

    max_skipped_fraction: float
    max_skipped_per_class: int


def _build(run: StageRun[VerifySettings]) -> DatasetReport:
    dataset = run.read_input("pack_recordio", DatasetManifest)
    _require_few_skipped(run, dataset)
    found = Found()
    total = sum(chunk.num_records for chunk in dataset.chunks)
    with run.context.progress.task("verify", total, "records") as progress:
        for chunk in dataset.chunks:
            _verify_chunk(run, chunk, found, progress)
    return build_report(run, dataset, found)


def _require_few_skipped(run: StageRun[VerifySettings], dataset: DatasetManifest) -> None:
    """Judged here and not while packing, so that another limit packs nothing again."""
    num_planned = sum(chunk.num_planned for chunk in dataset.chunks)
    by_class = count_skipped_by_class(dataset)
    num_skipped = by_class.total()
    fraction, limit = num_skipped / num_planned, run.settings.max_skipped_fraction
    if fraction > limit:
        raise DataError(
            f"{run.keys.dataset}: {num_skipped:,} of {num_planned:,} records had to be skipped ({fraction:.2%}; "
            f"max_skipped_fraction allows {limit:.2%}): {dict(count_skipped(dataset))}\n{_list_skipped(run, dataset)}"
        )
    if over := {synset: count for synset, count in by_class.items() if count > run.settings.max_skipped_per_class}:
        raise DataError(
            f"{run.keys.dataset}: more than {run.settings.max_skipped_per_class} records (max_skipped_per_class) "
            f"had to be skipped of {_short(over)}\n{_list_skipped(run, dataset)}"
        )


def _list_skipped(run: StageRun[VerifySettings], dataset: DatasetManifest) -> str:
    """The first skipped records, a line each, and where all of them are listed and copied."""
    lines: list[str] = []
    for chunk in dataset.chunks:
        if chunk.quarantined is None:
            continue
        table = read_table(run.store, run.key_of("pack_recordio", chunk.skipped.key))
        rows = table.head(_MAX_LISTED - len(lines)).iter_rows()
        lines += [f"  {chunk.name} {record_id}: {synset}/{name}: {reason}" for record_id, synset, name, reason in rows]
    folder = run.key_of("pack_recordio", "data/")
    return "\n".join(
        [
            *lines,
            f"all of them: {folder}skipped_*.parquet, copies: {folder}quarantined_*.tar",
            "if that is right, set a larger max_skipped_fraction or max_skipped_per_class; nothing is packed again",
        ]
    )


def _verify_chunk(run: StageRun[VerifySettings], chunk: Chunk, found: Found, progress: Task) -> None:
    """Raises DataError at the first record, index line or list line that is not as planned."""
    expected = _expected_records(run, chunk)
    offsets = _parse_lines(run, chunk.idx, _parse_index_line)
    listed = [line[:2] for line in _parse_lines(run, chunk.lst, parse_list_line)]
    _require(chunk, "list", listed, [(record_id, float(label)) for record_id, label in expected])
    reader = SequentialReader(run.store, run.key_of("pack_recordio", chunk.rec.key))
    read_offsets = []
    for position, (offset, payload) in enumerate(iterate_records(reader.read, chunk.rec.key)):
        record = unpack_image(payload, chunk.rec.key)
        wanted = expected[position] if position < len(expected) else None
        _require(chunk, f"record {position}", (record.record_id, *record.labels), wanted)
        _measure(chunk, record, found)
        read_offsets.append((record.record_id, offset))
        progress.advance(1)
    _require(chunk, "number of records", len(read_offsets), len(expected))
    _require(chunk, "index", offsets, read_offsets)
    _require(chunk, "SHA-256", reader.sha256(), chunk.rec.sha256)
    for stored in (chunk.idx, chunk.lst):
        data = run.store.get(run.key_of("pack_recordio", stored.key))
        _require(chunk, f"SHA-256 of {stored.key}", hashlib.sha256(data).hexdigest(), stored.sha256)


def _expected_records(run: StageRun[VerifySettings], chunk: Chunk) -> list[tuple[int, int]]:
    """(record id, label) of all that was planned and not skipped, in order."""
    keys = ("record_id", "label")
    plan = read_table(run.store, run.key_of("pack_recordio", chunk.plan_key), keys)
    skipped = set(read_table(run.store, run.key_of("pack_recordio", chunk.skipped.key), keys[:1])["record_id"])
    return [(record_id, label) for record_id, label in plan.iter_rows() if record_id not in skipped]


def _parse_lines(run: StageRun[VerifySettings], stored: StoredObject, parse: Callable[[str], T]) -> list[T]:
    text = run.store.get(run.key_of("pack_recordio", stored.key)).decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n") if text else []  # not splitlines: a name may hold U+2028
    try:
        return [parse(line) for line in lines]
    except ValueError as error:
        raise DataError(f"{stored.key}: a line of another shape than expected: {error}") from None


def _parse_index_line(line: str) -> tuple[int, int]:
    record_id, offset = line.split("\t")
    return int(record_id), int(offset)


def _measure(chunk: Chunk, record: ImageRecord, found: Found) -> None:
    try:
        header = read_image_header(lambda offset, num_bytes: record.image[offset : offset + num_bytes])
    except NotAnImage as reason:
        raise DataError(f"chunk {chunk.name}: record {record.record_id}: an image expected, found: {reason}") from None
    found.num_records[chunk.split][int(record.labels[0])] += 1
    found.width.add(header.width)
    found.height.add(header.height)
    found.record_bytes.add(len(record.image))


def _require(chunk: Chunk, what: str, given: object, expected: object) -> None:
    if given != expected:
        raise DataError(f"chunk {chunk.name}: {what}: expected {_short(expected)}, found {_short(given)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _read_settings(context: StageContext) -> VerifySettings:
    dataset = context.dataset
    return VerifySettings(
        max_skipped_fraction=dataset.max_skipped_fraction, max_skipped_per_class=dataset.max_skipped_per_class
    )


STAGE = Stage(
    name="verify",
    version=2,
    title="Read every record back and report on the dataset",
    manifest=DatasetReport,
    read_settings=_read_settings,
    build=_build,
)
