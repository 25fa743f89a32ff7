"""make bench NAME=untar: indexing the demo's archive, beside unpacking it and beside walking it with tarfile.

All three find every member; the index tells it by its content too and writes what it found. They run in turn, five
times each; the last line has the medians in seconds, and how many times as fast as each of the others the index is.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from demo.archive import ARCHIVE_NAME, prepare
from imagenet_ops.adapters.object_store import open_store
from imagenet_ops.progress import LogProgress
from imagenet_ops.settings import DatasetSettings
from imagenet_ops.stages import download, untar
from imagenet_ops.stages.stage import StageContext, build_part, finish, plan_parts, run_stage

_NUM_RUNS = 5
_ARCHIVE = Path(".local/demo").absolute() / ARCHIVE_NAME


def main() -> None:
    prepare()
    ways = {"index": time_index, "tarfile": time_tarfile, "unpack": time_unpack}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(_NUM_RUNS):
        for name, measure in ways.items():
            seconds[name].append(measure())
        print(f"run {run + 1}: " + ", ".join(f"{name} {values[-1]:.3f} s" for name, values in seconds.items()))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    result = {f"{name}_seconds": round(value, 4) for name, value in medians.items()}
    for name in ("tarfile", "unpack"):
        result[f"times_faster_than_{name}"] = round(medians[name] / medians["index"], 2)
    print(json.dumps(result))


def time_index() -> float:
    """Our untar with all its writing; the download before it does not count."""
    with tempfile.TemporaryDirectory() as folder:
        source = {"url": _ARCHIVE.as_uri()}
        settings = DatasetSettings.model_validate(
            {"name": "bench", "title": "bench", "sources": [source], "layout": "class_tars"}
        )
        context = StageContext(open_store(Path(folder).as_uri()), settings, LogProgress(), Path())
        key = run_stage(context, download.STAGE, None)

        def index() -> None:
            for part_key in plan_parts(context, untar.STAGE, key):
                build_part(context, untar.STAGE, part_key)
            finish(context, untar.STAGE, key)

        return _seconds_of(index)


def time_tarfile() -> float:
    """Python's tarfile, inner tars in place: every member's first bytes, nothing kept."""

    def walk() -> None:
        with tarfile.open(_ARCHIVE) as outer:
            for class_tar in outer:
                with tarfile.open(fileobj=outer.extractfile(class_tar)) as inner:
                    for member in inner:
                        content = inner.extractfile(member)
                        assert content is not None
                        content.read(512)

    return _seconds_of(walk)


def time_unpack() -> float:
    """The usual recipe: tar into files, twice."""
    with tempfile.TemporaryDirectory() as folder:

        def unpack() -> None:
            subprocess.run(["tar", "-xf", str(_ARCHIVE), "-C", folder], check=True)
            for class_tar in Path(folder).glob("*.tar"):
                target = class_tar.with_suffix("")
                target.mkdir()
                subprocess.run(["tar", "-xf", str(class_tar), "-C", str(target)], check=True)
                class_tar.unlink()

        return _seconds_of(unpack)


def _seconds_of(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
