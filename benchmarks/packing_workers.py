"""make bench NAME=packing_workers: why packing works on processes: the same images and codec on threads beside them.

Threads get the images read and transcoded and give the results back in order, which is the least they would have to do;
processes also bring the records to the starter through shared memory. Both keep nothing. The last line has the medians
of five runs in images per second, and processes over threads, for each check of the fast profile and for im2rec.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.packing.corpora import prepare_corpus
from imagenet_ops.adapters.fast_codec import FastCodec
from imagenet_ops.adapters.im2rec_codec import Im2recCodec
from imagenet_ops.adapters.stored_image import Codec
from imagenet_ops.packer.items import PackItem
from imagenet_ops.packer.messages import Setup
from imagenet_ops.packer.packing import pack_in_order
from imagenet_ops.packer.readers import FolderReader

_NUM_IMAGES, _NUM_WORKERS, _NUM_RUNS = 5_000, 2, 5
_CODECS: dict[str, Codec] = {
    "decode": FastCodec(480, 90),
    "structure": FastCodec(480, 90, check="structure"),
    "im2rec": Im2recCodec(480, quality=90),
}


def main() -> None:
    corpus = prepare_corpus("ilsvrc", _NUM_IMAGES)
    reader = FolderReader(corpus.images)
    names = [str(path.relative_to(corpus.images)) for path in sorted(corpus.images.rglob("*.JPEG"))]
    items = [PackItem(number, (0.0,), name, name) for number, name in enumerate(names)]
    result: dict[str, float] = {}
    for name, codec in _CODECS.items():
        rates: dict[str, list[float]] = {"threads": [], "processes": []}
        for _ in range(_NUM_RUNS):
            rates["threads"].append(_rate(lambda codec=codec: run_threads(items, reader, codec)))
            rates["processes"].append(_rate(lambda codec=codec: run_processes(items, reader, codec)))
        medians = {way: statistics.median(values) for way, values in rates.items()}
        print(f"{name}: " + ", ".join(f"{way} {rate:,.0f} images/s" for way, rate in medians.items()), flush=True)
        result |= {f"{name}_{way}": round(rate) for way, rate in medians.items()}
        result[f"{name}_processes_over_threads"] = round(medians["processes"] / medians["threads"], 2)
    print(json.dumps(result))


def run_threads(items: list[PackItem], reader: FolderReader, codec: Codec) -> None:
    with ThreadPoolExecutor(_NUM_WORKERS) as pool:
        for stored in pool.map(lambda item: codec.transcode(reader.read(item)), items):
            assert stored.image


def run_processes(items: list[PackItem], reader: FolderReader, codec: Codec) -> None:
    for batch in pack_in_order(items, Setup(reader, codec), _NUM_WORKERS):
        assert batch.data


def _rate(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return _NUM_IMAGES / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
