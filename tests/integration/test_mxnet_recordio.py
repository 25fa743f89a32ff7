"""Our RecordIO against mxnet's own reader and writer, in the trainer's environment."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest

from imagenet_ops.deployment import read_deployment
from imagenet_ops.domain.recordio import MAGIC, ImageRecord, encode_record, iterate_records, pack_image, unpack_image
from tests.builders import jpeg

pytestmark = pytest.mark.trainer
REPOSITORY = Path(__file__).parents[2]
PAYLOADS = [
    b"",
    b"a",
    b"abcd",
    MAGIC,
    b"abcd" + MAGIC,
    b"ab" + MAGIC + b"xy",
    MAGIC * 3,
    b"abcd" + MAGIC + b"efg",
    MAGIC + b"zz",
    bytes(100_001),
]
IMAGES = [
    ImageRecord(7, (3.0,), jpeg(20, 10)),
    ImageRecord(2, (21_840.0,), jpeg(10, 20, mode="L")),
    ImageRecord(2**40, (1.0, 2.5, 3.0), MAGIC + b"not a picture"),
]

READ = """
import base64, json, sys
import mxnet as mx
reader = mx.recordio.MXRecordIO(sys.argv[1] + ".rec", "r")
payloads = []
while (payload := reader.read()) is not None:
    payloads.append(base64.b16encode(payload).decode())
print(json.dumps(payloads))
"""
READ_BY_INDEX = """
import base64, json, sys
import mxnet as mx
reader = mx.recordio.MXIndexedRecordIO(sys.argv[1] + ".idx", sys.argv[1] + ".rec", "r")
found = []
for key in reversed(reader.keys):
    header, image = mx.recordio.unpack(reader.read_idx(key))
    labels = header.label.tolist() if header.flag else [header.label]
    found.append([key, header.flag, labels, header.id, header.id2, base64.b16encode(image).decode()])
print(json.dumps(found))
"""
WRITE = """
import base64, json, sys
import mxnet as mx
payloads, images = json.load(sys.stdin)
writer = mx.recordio.MXRecordIO(sys.argv[1] + ".rec", "w")
for payload in payloads:
    writer.write(base64.b16decode(payload))
for record_id, labels, image in images:
    label = labels if len(labels) > 1 else labels[0]
    writer.write(mx.recordio.pack(mx.recordio.IRHeader(0, label, record_id, 0), base64.b16decode(image)))
writer.close()
"""
ITERATE = """
import json, sys
import mxnet as mx
found = []
for batch in mx.io.ImageRecordIter(path_imgrec=sys.argv[1] + ".rec", data_shape=(3, 10, 10), batch_size=1):
    found += batch.label[0].asnumpy().tolist()
print(json.dumps(found))
"""


def run_in_trainer(script: str, stem: Path, text: str = "") -> str:
    """What the script prints; without the trainer's Python this fails: a format is not checked by skipping."""
    trainer_python = read_deployment(folder=REPOSITORY).trainer_python
    assert trainer_python.exists(), (
        f"{trainer_python}: no trainer's Python there; IMAGENET_OPS_TRAINER_PYTHON says where it is"
    )
    command = [str(trainer_python), "-W", "ignore", "-c", script, str(stem)]
    result = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def hex_of(data: bytes) -> str:
    return data.hex().upper()


def test_mxnet_reads_every_payload_that_we_wrote(tmp_path: Path) -> None:
    stem = tmp_path / "ours"
    stem.with_suffix(".rec").write_bytes(b"".join(map(encode_record, PAYLOADS)))
    assert json.loads(run_in_trainer(READ, stem)) == [hex_of(payload) for payload in PAYLOADS]


def test_mxnet_finds_our_images_by_our_index(tmp_path: Path) -> None:
    stem = tmp_path / "ours"
    file, index = b"", ""
    for record in IMAGES:
        index += f"{record.record_id}\t{len(file)}\n"
        file += encode_record(pack_image(record))
    stem.with_suffix(".rec").write_bytes(file)
    stem.with_suffix(".idx").write_text(index)
    assert json.loads(run_in_trainer(READ_BY_INDEX, stem)) == [
        [
            record.record_id,
            len(record.labels) if len(record.labels) > 1 else 0,
            list(record.labels),
            record.record_id,
            0,
            hex_of(record.image),
        ]
        for record in reversed(IMAGES)
    ]


def test_mxnets_image_iterator_takes_our_records(tmp_path: Path) -> None:
    stem = tmp_path / "ours"
    records = [ImageRecord(index, (float(label),), jpeg(24, 16, seed=index)) for index, label in enumerate([5, 0, 3])]
    stem.with_suffix(".rec").write_bytes(b"".join(encode_record(pack_image(record)) for record in records))
    assert json.loads(run_in_trainer(ITERATE, stem)) == [5.0, 0.0, 3.0]


def test_mxnet_writes_the_very_bytes_that_we_write_and_we_read_them(tmp_path: Path) -> None:
    stem = tmp_path / "theirs"
    given = [
        [hex_of(payload) for payload in PAYLOADS],
        [[record.record_id, record.labels, hex_of(record.image)] for record in IMAGES],
    ]
    run_in_trainer(WRITE, stem, json.dumps(given))
    theirs = stem.with_suffix(".rec").read_bytes()
    assert theirs == b"".join(map(encode_record, [*PAYLOADS, *map(pack_image, IMAGES)]))
    payloads = [payload for _, payload in iterate_records(io.BytesIO(theirs).read, "theirs.rec")]
    assert payloads[: len(PAYLOADS)] == PAYLOADS
    assert [unpack_image(payload, "theirs.rec") for payload in payloads[len(PAYLOADS) :]] == IMAGES
