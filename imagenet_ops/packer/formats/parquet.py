"""Parquet: a row a record, with record_id, labels, name and the image's bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from imagenet_ops.adapters.object_store import ObjectStore, ObjectWriter
from imagenet_ops.errors import ConfigError
from imagenet_ops.packer.formats import PackedImage, images_of
from imagenet_ops.packer.items import Batch

_ROW_GROUP_BYTES = 32 * 2**20


class ParquetChunk:
    """A ChunkFormat; a row group holds about 32 MiB of images, which are not compressed again."""

    def __init__(self, name: str, file: ObjectWriter) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        self.writers = {f"{name}.parquet": file}
        self._schema = pa.schema(
            {"record_id": pa.uint64(), "labels": pa.list_(pa.float32()), "name": pa.string(), "image": pa.binary()}
        )
        compression = {"record_id": "zstd", "labels.list.element": "zstd", "name": "zstd", "image": "none"}
        self._parquet = ParquetWriter(cast(Any, _FileOfWriter(file)), self._schema, compression=compression)
        self._rows: list[PackedImage] = []
        self._num_bytes = 0

    def add(self, batch: Batch) -> None:
        for row in images_of(batch):
            self._rows.append(row)
            self._num_bytes += len(row.image)
            if self._num_bytes >= _ROW_GROUP_BYTES:
                self._write_row_group()

    def finish(self) -> None:
        if self._rows:
            self._write_row_group()
        self._parquet.close()

    def _write_row_group(self) -> None:
        import pyarrow as pa

        columns = {
            "record_id": [row.item.record_id for row in self._rows],
            "labels": [row.item.labels for row in self._rows],
            "name": [row.item.name for row in self._rows],
            "image": [row.image for row in self._rows],
        }
        self._parquet.write_table(pa.table(columns, schema=self._schema))
        self._rows, self._num_bytes = [], 0


class _FileOfWriter:
    """An ObjectWriter as the file object that pyarrow writes to."""

    closed = False

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> int:
        self._writer.write(bytes(data))
        return len(data)

    def tell(self) -> int:
        return self._writer.num_bytes

    def flush(self) -> None:
        """The store's writer flushes when it ends."""

    def close(self) -> None:
        self.closed = True


@contextmanager
def open_parquet(store: ObjectStore, folder: str, name: str) -> Iterator[ParquetChunk]:
    """Raises ConfigError where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ConfigError("also_write: parquet needs pyarrow; install imagenet-ops[parquet]") from None
    with store.open_writer(f"{folder}{name}.parquet") as file:
        chunk = ParquetChunk(name, file)
        yield chunk
        chunk.finish()
