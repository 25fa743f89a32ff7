"""make bench NAME=pack: this project's packing beside im2rec.py, bare codec loops and other projects' writers.

All pack the same corpora of real photographs, each from the start of its process to the exit. They run in turn, once to
warm up and then five times; tables and ratios are of the medians. A ratio of times is the peer's over ours. The last
line has the keys of `results.summarise`; null stands for what did not run.

    ARGS="--small"                      few images, one run each, no warming up: whether it works
    ARGS="--only ilsvrc/*im2rec*"       some packers only, as corpus/packer
    ARGS="--images 20000"               images of ilsvrc; fall11 has 2/5 of them, large 3/50
    ARGS="--memory"                     only the memory of packing 1,000 and 20,000 images
    ARGS="--profile"                    only where the fast profile's codec spends its time
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.packing.corpora import Corpus, prepare_corpus
from benchmarks.packing.measured_process import CommandFailed, measure
from benchmarks.packing.packers import (
    Packer,
    codec_loop,
    im2rec,
    img2dataset,
    opencv_loop,
    our_im2rec,
    our_pipeline,
    shard_writer,
    untar_and_im2rec,
)
from benchmarks.packing.peer_environment import NoPeers
from benchmarks.packing.quality import measure_quality
from benchmarks.packing.results import Result, Results, Run, print_table, summarise

_NUM_IMAGES, _NUM_IMAGES_SMALL = 5_000, 200
_SHARES = {"ilsvrc": 1.0, "fall11": 0.4, "large": 0.06}
_MEMORY_IMAGES = (1_000, 20_000)
_FROM_ARCHIVE = {
    "untar_im2rec_2": untar_and_im2rec(),
    "ours_fast_decode": our_pipeline("decode"),
    "codec_loop_decode": codec_loop("decode"),
}
_PACKERS: dict[str, dict[str, Packer]] = {
    "ilsvrc": {
        "im2rec_1": im2rec(1),
        "im2rec_2": im2rec(2),
        "ours_im2rec": our_im2rec(),
        "opencv_loop_1": opencv_loop(1),
        "opencv_loop_2": opencv_loop(2),
        **_FROM_ARCHIVE,
        "ours_fast_structure": our_pipeline("structure"),
        "codec_loop_structure": codec_loop("structure"),
        "img2dataset": img2dataset(keeps_small=False),
        "img2dataset_keep": img2dataset(keeps_small=True),
        "mds_bytes": shard_writer("mds", "bytes"),
        "mds_resize": shard_writer("mds", "resize"),
        "webdataset_bytes": shard_writer("webdataset", "bytes"),
        "webdataset_resize": shard_writer("webdataset", "resize"),
    },
    "fall11": _FROM_ARCHIVE,
    "large": _FROM_ARCHIVE,
}
_WITH_QUALITY = [
    f"{corpus}/{packer}" for corpus in ("fall11", "large") for packer in ("untar_im2rec_2", "ours_fast_decode")
]


def main() -> None:
    options = _parse_options()
    num_images = options.images or (_NUM_IMAGES_SMALL if options.small else _NUM_IMAGES)
    if options.memory:
        print(json.dumps(_measure_memory()))
    elif options.profile:
        _print_profile(prepare_corpus("ilsvrc", num_images))
    else:
        num_warming, num_runs = (0, 1) if options.small else (1, options.runs)
        print(json.dumps(summarise(_measure_all(num_images, options.only, num_warming, num_runs))))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench NAME=pack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--images", type=int)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="CORPUS/PACKER")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args()


def _measure_all(num_images: int, patterns: list[str], num_warming: int, num_runs: int) -> Results:
    all_results: Results = {}
    for name, all_packers in _PACKERS.items():
        packers = {
            packer: all_packers[packer]
            for packer in all_packers
            if any(fnmatch(f"{name}/{packer}", pattern) for pattern in patterns)
        }
        if packers:
            corpus = prepare_corpus(name, round(num_images * _SHARES[name]))
            results = _measure_corpus(corpus, packers, num_warming, num_runs)
            print_table(corpus, packers, results)
            all_results |= {f"{name}/{packer}": result for packer, result in results.items()}
    return all_results


def _measure_corpus(corpus: Corpus, packers: dict[str, Packer], num_warming: int, num_runs: int) -> dict[str, Result]:
    """All packers in turn; one that fails is told of and left out."""
    results: dict[str, list[Run]] = {name: [] for name in packers}
    for turns_left in reversed(range(num_warming + num_runs)):
        for name in list(results):
            with_quality = turns_left == 0 and f"{corpus.name}/{name}" in _WITH_QUALITY
            try:
                run = _run(corpus, packers[name], with_quality)
            except (CommandFailed, NoPeers) as error:
                print(f"{corpus.name}/{name} is left out: {error}", file=sys.stderr)
                del results[name]
            else:
                results[name].append(run)
                print(f"{corpus.name}/{name}: {run.usage.seconds:.2f} s", flush=True)
    return {name: Result(runs[num_warming:]) for name, runs in results.items()}


def _run(corpus: Corpus, packer: Packer, with_quality: bool) -> Run:
    with tempfile.TemporaryDirectory(dir=corpus.folder.parent) as name:
        folder = Path(name)
        start = packer.start(corpus, folder)
        before = _num_bytes_below(folder)
        usage = measure(start.command, folder, start.environment)
        _require_all_images(corpus, folder)
        quality = measure_quality(corpus, folder) if with_quality else None
        return Run(usage, _num_bytes_below(folder) - before, quality)


def _require_all_images(corpus: Corpus, folder: Path) -> None:
    """im2rec.py and img2dataset end well whatever they leave out."""
    counts = [len(path.read_text().splitlines()) for path in folder.rglob("*.idx")]
    counts += [json.loads(path.read_text())["successes"] for path in folder.rglob("*_stats.json")]
    if counts and sum(counts) != corpus.count:
        raise CommandFailed(f"{sum(counts):,} of {corpus.count:,} images were packed")


def _num_bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _measure_memory() -> dict[str, int]:
    """Peak bytes of the fast profile, by number of images: the same for a small and a large archive."""
    peaks = {}
    for count in _MEMORY_IMAGES:
        run = _run(prepare_corpus("ilsvrc", count, archive_only=True), our_pipeline("decode"), with_quality=False)
        print(f"{count:,} images: {run.usage.peak_bytes / 1e6:.0f} MB at most, {run.usage.seconds:.1f} s")
        peaks[f"peak_rss_bytes_{count}"] = run.usage.peak_bytes
    return peaks


def _print_profile(corpus: Corpus) -> None:
    for check in ("decode", "structure"):
        with tempfile.TemporaryDirectory() as folder:
            python, *arguments = codec_loop(check).start(corpus, Path(folder)).command
            usage = measure([python, "-m", "cProfile", "-s", "tottime", *arguments], Path(folder))
        print(f"check {check}, {corpus.count:,} images")
        print("\n".join(usage.output.splitlines()[:24]))


if __name__ == "__main__":
    main()
