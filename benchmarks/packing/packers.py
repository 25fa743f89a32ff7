"""Everything that is measured, as a command: this project's packing, im2rec.py, bare loops and other projects' writers.

A packer's `start` makes ready what does not count and gives the command that does.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from benchmarks.packing.corpora import Corpus
from benchmarks.packing.measured_process import measure
from benchmarks.packing.peer_environment import peer_command

NUM_PROCESSES = 2
_TRAINER_PYTHON = Path(".venv-trainer/bin/python").absolute()
_IMAGENET_OPS = Path(sys.executable).with_name("imagenet-ops")
_SCRIPTS = Path(__file__).parent.absolute()
_OPTIONS = ("--resize", "480", "--quality", "90")
# The usual recipe, as MXNet's tutorial has it.
_UNTAR_AND_IM2REC = """\
set -e
mkdir images && tar -xf "$1" -C images
for class_tar in images/*.tar; do
    mkdir "${class_tar%.tar}" && tar -xf "$class_tar" -C "${class_tar%.tar}" && rm "$class_tar"
done
"$2" "$3" packed images --list --recursive
"$2" "$3" packed images --resize 480 --quality 90 --num-thread "$4"
"""


@dataclass(frozen=True)
class Start:
    """A command to be measured; it runs in an empty folder of its own."""

    command: list[str | Path]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Packer:
    """`work` says what it does with each image; `start` takes the corpus and the folder that it will run in."""

    work: str
    start: Callable[[Corpus, Path], Start]


def im2rec(num_threads: int) -> Packer:
    def start(corpus: Corpus, folder: Path) -> Start:
        _list_images(corpus, folder / "packed.lst")
        script = _find_im2rec()
        return Start([_TRAINER_PYTHON, script, "packed", corpus.images, *_OPTIONS, "--num-thread", str(num_threads)])

    return Packer(f"im2rec.py --num-thread {num_threads} over a folder: decode, resize, encode", start)


def untar_and_im2rec() -> Packer:
    def start(corpus: Corpus, folder: Path) -> Start:
        script = _find_im2rec()
        values = (corpus.archive, _TRAINER_PYTHON, script, str(NUM_PROCESSES))
        return Start(["bash", "-c", _UNTAR_AND_IM2REC, "bash", *values])

    return Packer("tar twice, im2rec.py --list, im2rec.py --num-thread 2: decode, resize, encode", start)


def our_im2rec() -> Packer:
    def start(corpus: Corpus, folder: Path) -> Start:
        _list_images(corpus, folder / "packed.lst")
        options = (*_OPTIONS, "--num-thread", str(NUM_PROCESSES))
        return Start([_IMAGENET_OPS, "im2rec", "packed", corpus.images, *options])

    return Packer("this project's im2rec, 2 processes over a folder: decode, resize, encode", start)


def our_pipeline(check: str) -> Packer:
    """untar to pack_recordio; the download before them does not count."""

    def start(corpus: Corpus, folder: Path) -> Start:
        environment = _prepare_store(corpus, folder)
        options = ("--until", "pack_recordio", "--set", f"check={check}", "--jobs", str(NUM_PROCESSES))
        return Start([_IMAGENET_OPS, "run", "all", "--dataset", "bench", *options], environment)

    return Packer(
        f"this project's fast profile from the archive to chunks: check {check}, resize what is larger", start
    )


def opencv_loop(num_processes: int) -> Packer:
    def start(corpus: Corpus, folder: Path) -> Start:
        return Start([sys.executable, _SCRIPTS / "opencv_loop.py", corpus.images, str(num_processes)])

    return Packer(
        f"im2rec's OpenCV calls alone, {num_processes} process(es): decode, resize, encode, keep nothing", start
    )


def codec_loop(check: str) -> Packer:
    def start(corpus: Corpus, folder: Path) -> Start:
        return Start([sys.executable, _SCRIPTS / "codec_loop.py", corpus.images, check])

    return Packer(
        f"the fast profile's codec alone, 1 process: check {check}, resize what is larger, keep nothing", start
    )


def img2dataset(*, keeps_small: bool) -> Packer:
    """Over file:// URLs, which it opens like any other."""

    def start(corpus: Corpus, folder: Path) -> Start:
        urls = [path.as_uri() for path in sorted(corpus.images.rglob("*.JPEG"))]
        (folder / "urls.txt").write_text("\n".join(urls) + "\n")
        options = {
            "url_list": "urls.txt",
            "input_format": "txt",
            "output_folder": "packed",
            "output_format": "webdataset",
            "processes_count": NUM_PROCESSES,
            "number_sample_per_shard": max(1, corpus.count // (4 * NUM_PROCESSES)),  # or one process has all the work
            "image_size": 480,
            "resize_mode": "keep_ratio",
            "encode_quality": 90,
            "resize_only_if_bigger": keeps_small,
            "skip_reencode": keeps_small,
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return Start([peer_command("img2dataset"), *arguments], {"NO_ALBUMENTATIONS_UPDATE": "1"})

    how = "decode, resize and encode what is larger" if keeps_small else "decode, resize, encode"
    return Packer(f"img2dataset over file:// URLs, 2 processes, to WebDataset: {how}", start)


def shard_writer(format_name: str, content: str) -> Packer:
    def start(corpus: Corpus, folder: Path) -> Start:
        script = _SCRIPTS / "shard_writers.py"
        return Start([peer_command("python"), script, format_name, content, corpus.images, "packed"])

    writer = {"mds": "streaming's MDSWriter", "webdataset": "webdataset's ShardWriter"}[format_name]
    how = {"bytes": "files as they are", "resize": "Pillow: decode, resize, encode"}[content]
    return Packer(f"{writer}, 2 processes over a folder: {how}", start)


def _find_im2rec() -> Path:
    """The script of the trainer environment's mxnet."""
    (script,) = _TRAINER_PYTHON.parent.parent.glob("lib/python3.*/site-packages/mxnet/tools/im2rec.py")
    return script


def _list_images(corpus: Corpus, path: Path) -> None:
    """im2rec.py's own list, made once a corpus."""
    made = corpus.folder / "packed.lst"
    if not made.exists():
        measure([_TRAINER_PYTHON, _find_im2rec(), "packed", "images", "--list", "--recursive"], corpus.folder)
    shutil.copy(made, path)


def _prepare_store(corpus: Corpus, folder: Path) -> dict[str, str]:
    """A catalogue of the one dataset, and a store in which it is downloaded."""
    catalogue = folder / "catalogue"
    catalogue.mkdir()
    settings = {
        "title": corpus.name,
        "sources": [{"url": corpus.archive.as_uri()}],
        "layout": "class_tars",
        "min_images_per_class": 2,  # all classes stay
        "validation_per_class": 1,
        "short_edge_pixels": 480,
        "jpeg_quality": 90,
        "profile": "fast",
    }
    (catalogue / "bench.yaml").write_text(yaml.safe_dump(settings))
    environment = {
        "IMAGENET_OPS_STORE_URL": (folder / "store").as_uri(),
        "IMAGENET_OPS_CATALOGUE": str(catalogue),
    }
    measure([_IMAGENET_OPS, "run", "download", "--dataset", "bench"], folder, environment)
    return environment
