"""What the runs of the packers come to: a table of medians a corpus, and the ratios that the benchmark is for."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass

from benchmarks.packing.corpora import Corpus
from benchmarks.packing.measured_process import Usage
from benchmarks.packing.packers import Packer
from benchmarks.packing.quality import Quality

_MEGABYTE = 1e6
_STAGE_LINE = re.compile(r"^(\w+) +built +([\d.]+ s)", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One run of a packer; `quality` only where it was looked at."""

    usage: Usage
    num_bytes_written: int
    quality: Quality | None


@dataclass(frozen=True)
class Result:
    """All runs of one packer over one corpus, in order."""

    runs: list[Run]

    @property
    def seconds(self) -> float:
        return statistics.median(run.usage.seconds for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        return statistics.median(run.usage.cpu_seconds for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        return max(run.usage.peak_bytes for run in self.runs)

    @property
    def quality(self) -> Quality | None:
        return self.runs[-1].quality


Results = dict[str, Result]
"""By corpus/packer, without those that failed."""


def print_table(corpus: Corpus, packers: dict[str, Packer], results: dict[str, Result]) -> None:
    """Medians of one corpus; MB are of what is read, and memory is the greatest of all runs."""
    num_bytes = corpus.archive.stat().st_size
    print(f"\n{corpus.name}: {corpus.count:,} images, {num_bytes / corpus.count / 1000:.0f} kB on average")
    print(
        f"{'packer':<22}{'images/s':>10}{'MB/s':>8}{'seconds':>9}{'CPU s':>8}{'images/CPU s':>14}{'peak MB':>9}"
        f"{'MB written':>12}  what it does"
    )
    for name, result in results.items():
        seconds, cpu_seconds = result.seconds, result.cpu_seconds
        print(
            f"{name:<22}{corpus.count / seconds:>10.0f}{num_bytes / _MEGABYTE / seconds:>8.1f}{seconds:>9.2f}"
            f"{cpu_seconds:>8.2f}{corpus.count / cpu_seconds:>14.0f}{result.peak_bytes / _MEGABYTE:>9.0f}"
            f"{result.runs[-1].num_bytes_written / _MEGABYTE:>12.1f}  {packers[name].work}"
        )
    for name, result in results.items():
        if quality := result.quality:
            print(f"{name:<22}{quality.psnr_db:.2f} dB PSNR, {quality.ssim:.4f} SSIM, {quality.num_images} images")
        if stages := _STAGE_LINE.findall(result.runs[-1].usage.output):
            print(f"{name:<22}" + ", ".join(f"{stage} {seconds}" for stage, seconds in stages))
    print(flush=True)


def summarise(results: Results) -> dict[str, float | int | None]:
    """Ratios of time are the peer's over ours, those of CPU time ours over the codec's; None is what did not run."""
    return {
        "im2rec_profile_ratio": _ratio(results, "ilsvrc/im2rec_2", "ilsvrc/ours_im2rec"),
        "fast_ilsvrc_decode_ratio": _ratio(results, "ilsvrc/untar_im2rec_2", "ilsvrc/ours_fast_decode"),
        "fast_ilsvrc_structure_ratio": _ratio(results, "ilsvrc/untar_im2rec_2", "ilsvrc/ours_fast_structure"),
        "fast_fall11_ratio": _ratio(results, "fall11/untar_im2rec_2", "fall11/ours_fast_decode"),
        "fast_2048_ratio": _ratio(results, "large/untar_im2rec_2", "large/ours_fast_decode"),
        "cpu_over_codec_im2rec": _cpu_ratio(results, "ilsvrc/ours_im2rec", "ilsvrc/opencv_loop_1"),
        "cpu_over_codec_fast": _cpu_ratio(results, "ilsvrc/ours_fast_decode", "ilsvrc/codec_loop_decode"),
        "psnr_gain_db": _psnr_gain(results),
        "peak_rss_bytes": max((results[name].peak_bytes for name in results if "/ours_" in name), default=None),
    }


def _ratio(results: Results, peer: str, ours: str) -> float | None:
    if peer in results and ours in results:
        return round(results[peer].seconds / results[ours].seconds, 2)
    return None


def _cpu_ratio(results: Results, ours: str, codec: str) -> float | None:
    if ours in results and codec in results:
        return round(results[ours].cpu_seconds / results[codec].cpu_seconds, 2)
    return None


def _psnr_gain(results: Results) -> float | None:
    """Mean over the corpora."""
    gains = []
    for corpus in ("fall11", "large"):
        ours, peers = (results.get(f"{corpus}/{packer}") for packer in ("ours_fast_decode", "untar_im2rec_2"))
        if ours and peers and ours.quality and peers.quality:
            gains.append(ours.quality.psnr_db - peers.quality.psnr_db)
    return round(statistics.mean(gains), 2) if gains else None
