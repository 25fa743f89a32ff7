"""SHARD_WRITERS FORMAT CONTENT FOLDER TARGET: other projects' writers, as their users call them, on two processes.

FORMAT is mds (mosaicml-streaming) or webdataset. CONTENT is bytes, the files as they are, or resize: decoded, with
a short edge of 480 pixels, and encoded at quality 90 with Pillow. Each process writes shards of its own.
Runs in the peers' environment, so it imports nothing of this project.
"""

from __future__ import annotations

import io
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from PIL import Image

_NUM_PROCESSES, _SHORT_EDGE, _QUALITY = 2, 480, 90
_Sample = tuple[str, bytes, int]  # key, JPEG, label


def main(format_name: str, content: str, folder: str, target: str) -> None:
    Path(target).mkdir()
    paths = sorted(Path(folder).rglob("*.JPEG"))
    labels = {synset: label for label, synset in enumerate(sorted({path.parent.name for path in paths}))}
    parts = [
        (
            format_name,
            content,
            [(path, labels[path.parent.name]) for path in paths[start::_NUM_PROCESSES]],
            target,
            start,
        )
        for start in range(_NUM_PROCESSES)
    ]
    with multiprocessing.Pool(_NUM_PROCESSES) as pool:
        pool.starmap(write_part, parts)
    if format_name == "mds":
        _without_torch()
        from streaming.base.util import merge_index

        merge_index(target, keep_local=True)


def write_part(format_name: str, content: str, files: list[tuple[Path, int]], target: str, part: int) -> None:
    write: Callable[[Iterator[_Sample], Path, int], None] = {"mds": _write_mds, "webdataset": _write_webdataset}[
        format_name
    ]
    read = {"bytes": Path.read_bytes, "resize": _resize}[content]
    write(((path.stem, read(path), label) for path, label in files), Path(target), part)


def _write_mds(samples: Iterator[_Sample], target: Path, part: int) -> None:
    _without_torch()
    from streaming import MDSWriter

    with MDSWriter(out=str(target / str(part)), columns={"key": "str", "image": "bytes", "label": "int"}) as writer:
        for key, jpeg, label in samples:
            writer.write({"key": key, "image": jpeg, "label": label})


def _write_webdataset(samples: Iterator[_Sample], target: Path, part: int) -> None:
    import webdataset

    with webdataset.ShardWriter(str(target / f"{part}-%05d.tar"), verbose=0) as writer:
        for key, jpeg, label in samples:
            writer.write({"__key__": key, "jpg": jpeg, "cls": label})


def _resize(path: Path) -> bytes:
    with Image.open(path) as image:
        scale = _SHORT_EDGE / min(image.size)
        size = round(image.width * scale), round(image.height * scale)
        buffer = io.BytesIO()
        image.convert("RGB").resize(size, Image.Resampling.BILINEAR).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def _without_torch() -> None:
    """Empty modules in torch's place: streaming imports it for its reading side alone, and it is 6 GB with its CUDA."""

    class Absent(ModuleType):
        __path__: list[str] = []  # noqa: RUF012

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {"__class_getitem__": classmethod(lambda cls, _: cls)})

    vision = ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.transforms.functional")
    for name in ("torch", "torch.distributed", "torch.utils", "torch.utils.data", *vision):
        sys.modules[name] = module = Absent(name)
        module.__spec__ = ModuleSpec(name, None)


if __name__ == "__main__":
    main(*sys.argv[1:])
