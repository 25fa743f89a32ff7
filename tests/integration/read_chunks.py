"""python read_chunks.py STORE_URL DATASET_MANIFEST_KEY: what mxnet's own readers find in every chunk, as JSON.

For the trainer's Python; needs nothing of the package. Each chunk: [ids, labels] of `MXIndexedRecordIO` by the index's
keys, and the labels of `ImageRecordIter`, which decodes each image and returns no ids.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

warnings.filterwarnings("ignore")
import mxnet as mx  # noqa: E402  it warns while it is imported


def read_by_index(idx: Path, rec: Path) -> dict[str, Any]:
    reader = mx.recordio.MXIndexedRecordIO(str(idx), str(rec), "r")
    heads = [(key, mx.recordio.unpack(reader.read_idx(key))[0]) for key in reader.keys]
    reader.close()
    return {
        "keys": [key for key, _ in heads],
        "ids": [head.id for _, head in heads],
        "labels": [int(head.label) for _, head in heads],
    }


def read_by_iterator(idx: Path, rec: Path, batch_size: int = 1) -> list[int]:
    """A crop of 8 pixels: every image is decoded, and none is too small for it."""
    batches = mx.io.ImageRecordIter(
        path_imgrec=str(rec),
        path_imgidx=str(idx),
        data_shape=(3, 8, 8),
        batch_size=batch_size,
        shuffle=False,
        round_batch=False,
        preprocess_threads=1,
        verbose=False,
    )
    return [int(label) for batch in batches for label in batch.label[0].asnumpy()[: batch_size - batch.pad]]


def read_chunks(store_url: str, manifest_key: str) -> dict[str, Any]:
    manifest = Path(unquote(urlsplit(store_url).path)) / manifest_key
    found = {}
    for chunk in json.loads(manifest.read_text())["chunks"]:
        idx, rec = (manifest.parent / chunk[kind]["key"] for kind in ("idx", "rec"))
        found[chunk["name"]] = {**read_by_index(idx, rec), "iterated_labels": read_by_iterator(idx, rec)}
    return found


if __name__ == "__main__":
    print(json.dumps(read_chunks(*sys.argv[1:])))
