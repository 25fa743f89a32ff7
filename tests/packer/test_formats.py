"""Every format of a chunk, read back by its own library: the same images, labels and order as RecordIO has."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import webdataset

from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.domain.image_list import parse_list_line
from imagenet_ops.domain.recordio import MAGIC, ImageRecord, iterate_records, unpack_image
from imagenet_ops.packer.formats import OpenFormat
from imagenet_ops.packer.formats import parquet as parquet_format
from imagenet_ops.packer.formats.parquet import open_parquet
from imagenet_ops.packer.formats.recordio import RecordIOChunk, open_recordio
from imagenet_ops.packer.formats.webdataset import open_webdataset
from imagenet_ops.packer.items import Batch, Packed, PackItem
from imagenet_ops.packer.messages import Setup
from imagenet_ops.packer.packing import pack_in_order
from imagenet_ops.packer.readers import FolderReader
from tests.builders import jpeg
from tests.packer.codecs import ObedientCodec

NAMES = ["n01/a.b.JPEG", "n01/with blank.JPEG", "n02/Löwe.JPEG", "n02/100%.JPEG"]


@pytest.fixture
def items(tmp_path: Path) -> list[PackItem]:
    """Fifty JPEGs, one of them unusable, one with RecordIO's magic behind its end."""
    images = {number: jpeg(16 + number, 16, seed=number) for number in range(50)}
    images[7] = b"skip"
    images[9] += bytes(-len(images[9]) % 4) + MAGIC + MAGIC + b"tail"
    for number, image in images.items():
        (tmp_path / str(number)).write_bytes(image)
    return [PackItem(100 + n, (float(n % 3),), f"{NAMES[n % 4]}{n}", str(n)) for n in images]


def write(folder: Path, items: list[PackItem], *formats: OpenFormat) -> FileStore:
    store = FileStore(folder / "store")
    with ExitStack() as stack:
        chunks = [stack.enter_context(open_format(store, "data/", "train_00000")) for open_format in formats]
        for batch in pack_in_order(items, Setup(FolderReader(folder), ObedientCodec()), 2):
            for chunk in chunks:
                chunk.add(batch)
    for chunk in chunks:
        for name, writer in chunk.writers.items():
            assert writer.num_bytes == (folder / "store" / "data" / name).stat().st_size
    return store


def expected(folder: Path, items: list[PackItem]) -> Iterator[tuple[int, float, bytes]]:
    for item in items:
        image = (folder / item.place).read_bytes()
        if image != b"skip":
            yield item.record_id, item.labels[0], image


def test_recordio_with_its_index_and_its_list(tmp_path: Path, items: list[PackItem]) -> None:
    store = write(tmp_path, items, open_recordio)
    rec = store.get("data/train_00000.rec")
    found = {offset: unpack_image(payload, "rec") for offset, payload in iterate_records(io.BytesIO(rec).read, "rec")}
    wanted = [ImageRecord(record_id, (label,), image) for record_id, label, image in expected(tmp_path, items)]
    assert list(found.values()) == wanted
    index = [tuple(map(int, line.split("\t"))) for line in store.get("data/train_00000.idx").decode().splitlines()]
    assert index == [(record.record_id, offset) for offset, record in found.items()]
    lines = [parse_list_line(line) for line in store.get("data/train_00000.lst").decode().splitlines()]
    names = {item.record_id: item.name for item in items}
    assert lines == [
        (record.record_id, record.labels[0], names[record.record_id].replace("%", "%25")) for record in wanted
    ]


def test_webdataset_reads_its_tar(tmp_path: Path, items: list[PackItem]) -> None:
    write(tmp_path, items, open_webdataset)
    path = tmp_path / "store" / "data" / "train_00000.tar"
    samples = list(webdataset.WebDataset(str(path), shardshuffle=False))
    found = [(int(sample["__key__"]), float(sample["cls"]), sample["jpg"]) for sample in samples]
    assert found == list(expected(tmp_path, items))
    assert [sample["cls"] for sample in samples][:3] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("row_group_bytes", [1, 5_000, 2**30])
def test_pyarrow_reads_its_parquet(
    tmp_path: Path, items: list[PackItem], row_group_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_format, "_ROW_GROUP_BYTES", row_group_bytes)
    write(tmp_path, items, open_parquet)
    file = pq.ParquetFile(tmp_path / "store" / "data" / "train_00000.parquet")
    rows = file.read().to_pylist()
    assert [(row["record_id"], *row["labels"], row["image"]) for row in rows] == list(expected(tmp_path, items))
    assert [row["name"] for row in rows] == [item.name for item in items if item.record_id != 107]
    assert (file.num_row_groups > 1) == (row_group_bytes < 2**30)


def test_all_formats_at_once_give_the_same_bytes_again(tmp_path: Path, items: list[PackItem]) -> None:
    formats = (open_recordio, open_webdataset, open_parquet)
    written = []
    for _ in range(2):
        store = write(tmp_path, items, *formats)
        written.append({info.key: store.get(info.key) for info in store.list("")})
        for key in written[-1]:
            store.delete(key)
    assert len(written[0]) == 5
    assert written[0] == written[1]


@pytest.mark.parametrize("open_format", [open_recordio, open_webdataset, open_parquet])
def test_a_chunk_of_nothing_can_be_read(tmp_path: Path, open_format: OpenFormat) -> None:
    write(tmp_path, [], open_format)
    data = tmp_path / "store" / "data"
    if open_format is open_webdataset:
        assert list(webdataset.WebDataset(str(data / "train_00000.tar"), shardshuffle=False, empty_check=False)) == []
    elif open_format is open_parquet:
        assert pq.read_table(data / "train_00000.parquet").num_rows == 0
    else:
        assert (data / "train_00000.rec").read_bytes() == b""


class FarWriter:
    """An ObjectWriter that is five gigabytes further than what was written to it."""

    def __init__(self) -> None:
        self.num_bytes = 5 * 2**30
        self.written = b""

    def write(self, data: bytes | memoryview) -> None:
        self.written += bytes(data)
        self.num_bytes += len(data)

    def sha256(self) -> str:
        return ""


def test_offsets_beyond_four_gigabytes_are_written_in_full() -> None:
    rec, idx, lst = FarWriter(), FarWriter(), FarWriter()
    chunk = RecordIOChunk("train_00000", rec, idx, lst)
    items = [PackItem(number, (1.0,), f"n01/{number}", "") for number in range(2)]
    packed = Packed(0, 8, "kept", 1, 1, 8, 8, 0, None)
    chunk.add(Batch(items, [packed, packed._replace(start=8, stop=16)], memoryview(bytes(16))))
    assert idx.written == b"0\t5368709120\n1\t5368709128\n"
