"""What the commands write, read by mxnet's own reader in the trainer's environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from imagenet_ops.deployment import read_deployment
from imagenet_ops.domain.recordio import MAGIC, ImageRecord
from tests.builders import jpeg
from tests.records.conftest import Records
from tests.records.record_files import damage, offsets_of, tiny_records, write_records

pytestmark = pytest.mark.trainer
REPOSITORY = Path(__file__).parents[2]
READ_BY_INDEX = """
import json, sys
import mxnet as mx
found = {}
for stem in sys.argv[1:]:
    reader = mx.recordio.MXIndexedRecordIO(stem + ".idx", stem + ".rec", "r")
    found[stem] = []
    for key in reversed(reader.keys):
        header, image = mx.recordio.unpack(reader.read_idx(key))
        labels = header.label.tolist() if header.flag else [header.label]
        found[stem].insert(0, [key, header.id, labels, image.hex()])
print(json.dumps(found))
"""


def read_by_mxnet(*stems: str) -> dict[str, list[list[object]]]:
    """Every record of each file, found by its index, back to front."""
    trainer_python = read_deployment(folder=REPOSITORY).trainer_python
    command = [str(trainer_python), "-W", "ignore", "-c", READ_BY_INDEX, *stems]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    found: dict[str, list[list[object]]] = json.loads(result.stdout)
    return found


def as_found(records: list[ImageRecord]) -> list[list[object]]:
    return [[record.record_id, record.record_id, list(record.labels), record.image.hex()] for record in records]


def test_mxnet_finds_every_record_that_the_commands_wrote(records: Records) -> None:
    originals = [
        *tiny_records(5),
        ImageRecord(9, (1.0, 2.5), jpeg(8, 8)),
        ImageRecord(8, (2.0,), MAGIC * 2 + jpeg(9, 9)),
    ]
    write_records("a.rec", originals)
    damage("a.rec", offsets_of(originals)[1], b"zzzz")
    saved = [originals[0], *originals[2:]]
    records("reindex", "a.rec", "--salvage")
    records("merge", "merged", "a.rec", "--salvage")
    records("merge", "renumbered", "merged.rec", "merged.rec", "--renumber")
    records("split", "merged.rec", "--chunks", 2, "--to", "part")
    records("filter", "merged.rec", "--to", "kept", "--labels", 2)
    renumbered = [ImageRecord(index, record.labels, record.image) for index, record in enumerate(saved + saved)]
    assert read_by_mxnet("a", "merged", "renumbered", "part_00000", "part_00001", "kept") == {
        "a": as_found(saved),
        "merged": as_found(saved),
        "renumbered": as_found(renumbered),
        "part_00000": as_found(saved[:3]),
        "part_00001": as_found(saved[3:]),
        "kept": as_found([record for record in saved if 2.0 in record.labels]),
    }
