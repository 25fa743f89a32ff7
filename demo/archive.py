"""The demo's archive: the elpv-dataset package's images as a tar of class tars like ImageNet's, odd members included.

    solar_cells.tar        n91000000.tar … n91100100.tar, one a class
    solar_cells.tsv        synset, tab, name

The digits of a synset are 910, 0 or 1 for mono- or polycrystalline, and the probability of a defect in per cent.
"""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from PIL import Image

LICENCE = (
    "elpv-dataset: photographs of solar cells by electroluminescence, Buerhop-Lutz et al. 2018, Deitsch et al. 2021; "
    "CC BY-NC-SA 4.0: not for commercial use"
)
ARCHIVE_NAME, NAMES_NAME = "solar_cells.tar", "solar_cells.tsv"
_TYPES = {"mono": "0", "poly": "1"}
_ODD_CLASS = "n91000000"


def prepare() -> None:
    """Writes the archive where `dags/datasets/demo.yaml` looks for it, and shows its licence."""
    print(f"demo data: {LICENCE}")
    write_archive(Path(".local/demo"))


def write_archive(folder: Path) -> None:
    """Writes both files where they are missing; the same package version gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    classes = _read_classes()
    if not (folder / NAMES_NAME).exists():
        table = "".join(f"{synset}\t{_name_of(synset)}\n" for synset in classes)
        _write_whole(folder / NAMES_NAME, table.encode())
    if not (folder / ARCHIVE_NAME).exists():
        tars = {f"{synset}.tar": _tar(_members(synset, images)) for synset, images in classes.items()}
        _write_whole(folder / ARCHIVE_NAME, _tar(tars.items()))


def _read_classes() -> dict[str, list[tuple[str, bytes]]]:
    """Synset → (file name, PNG bytes) of its images, both sorted."""
    data = files("elpv_dataset") / "data"
    classes: dict[str, list[tuple[str, bytes]]] = {}
    for row in csv.reader(data.joinpath("labels.csv").read_text().splitlines(), delimiter=" ", skipinitialspace=True):
        path, probability, cell_type = row
        synset = f"n910{_TYPES[cell_type]}0{round(100 * float(probability)):03d}"
        classes.setdefault(synset, []).append((path.rpartition("/")[2], (data / path).read_bytes()))
    return {synset: sorted(classes[synset]) for synset in sorted(classes)}


def _name_of(synset: str) -> str:
    kind = "monocrystalline" if synset[4] == _TYPES["mono"] else "polycrystalline"
    return f"{kind} cell, {int(synset[-3:])} % likely defective"


def _members(synset: str, images: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    named = [(f"{synset}_{name}", image) for name, image in images]
    return iter(named) if synset != _ODD_CLASS else _with_odd_members(named)


def _with_odd_members(images: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Five of the images in odd shapes, and two members that are no images."""
    (cut, cut_png), (flipped, flipped_png), (png, png_png), (cmyk, cmyk_png), (umlaut, umlaut_png), *others = images
    yield _jpeg_name(cut), _cut_in_half(_jpeg(cut_png, "L"))
    yield _jpeg_name(flipped), _flip_bytes(_jpeg(flipped_png, "L"))
    yield _jpeg_name(png), png_png  # a PNG all the same
    yield _jpeg_name(cmyk), _jpeg(cmyk_png, "CMYK")
    yield umlaut.replace("_cell", " schöne Zelle für Prüfung "), umlaut_png
    yield from others
    yield f"{_ODD_CLASS}_readme.txt", b"This is text, whatever the folder is for.\n"
    yield f"{_ODD_CLASS}_empty.JPEG", b""


def _jpeg_name(name: str) -> str:
    return name.replace(".png", ".JPEG")


def _jpeg(png: bytes, mode: str) -> bytes:
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert(mode).save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def _cut_in_half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flip_bytes(data: bytes) -> bytes:
    """All bits of 32 bytes in the middle of the pixels."""
    middle = len(data) // 2
    return data[:middle] + bytes(byte ^ 0xFF for byte in data[middle : middle + 32]) + data[middle + 32 :]


def _tar(members: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members:
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return buffer.getvalue()


def _write_whole(path: Path, data: bytes) -> None:
    partial = path.with_suffix(".partial")
    partial.write_bytes(data)
    partial.replace(path)
