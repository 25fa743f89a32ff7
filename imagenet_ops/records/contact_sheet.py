"""records show: a picture of many images, each with its labels under it.

thumbnail  thumbnail  thumbnail
 label      label      label        one cell; an image that can't be read is a crossed one
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from imagenet_ops.domain.record_scan import FoundRecord
from imagenet_ops.domain.recordio import unpack_image
from imagenet_ops.records.reading import RecordReader
from imagenet_ops.records.texts import find_header, format_label

Pixels = NDArray[np.uint8]
"""Shape (height, width, 3), blue first."""

_EDGE, _TEXT_HEIGHT, _GAP = 128, 20, 6
_WHITE, _GREY, _BLACK, _RED = (255, 255, 255), (200, 200, 200), (0, 0, 0), (0, 0, 200)
_MAX_TEXT = 16


@dataclass(frozen=True)
class Cell:
    """One image of the sheet; `thumbnail` is None where it can't be read."""

    text: str
    thumbnail: Pixels | None


def draw_contact_sheet(
    path: Path, reader: RecordReader, *, count: int, num_columns: int, seed: int | None
) -> tuple[bytes, list[Cell]]:
    """A PNG of the first `count` images, or with a seed of so many drawn by chance, in the file's order."""
    with reader.watch("show", [path]):
        records = reader.records(path)
        if seed is None:
            cells = [_make_cell(found) for found in islice(records, count)]
        else:
            cells = _sample(records, count, random.Random(seed))
    return _encode(_arrange(cells, num_columns)), cells


def _sample(records: Iterator[FoundRecord], count: int, chance: random.Random) -> list[Cell]:
    """Algorithm R: each record is as likely as any other; only the cells of those chosen so far are held."""
    chosen = [(position, _make_cell(found)) for position, found in enumerate(islice(records, count))]
    for position, found in enumerate(records, count):
        place = chance.randrange(position + 1)
        if place < count:
            chosen[place] = (position, _make_cell(found))
    return [cell for _, cell in sorted(chosen, key=lambda pair: pair[0])]


def _make_cell(found: FoundRecord) -> Cell:
    record = unpack_image(found.payload, "")
    text = ",".join(map(format_label, record.labels[:_MAX_TEXT]))
    return Cell(text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 2] + "..", _make_thumbnail(record.image))


def _make_thumbnail(image: bytes) -> Pixels | None:
    header = find_header(image)
    if isinstance(header, str):
        return None
    pixels = _decode_jpeg(image) if header.format == "jpeg" else _decode_png(image)
    if pixels is None:
        return None
    scale = _EDGE / max(pixels.shape[:2])
    width, height = (max(1, round(edge * scale)) for edge in (pixels.shape[1], pixels.shape[0]))
    return cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def _decode_jpeg(image: bytes) -> Pixels | None:
    """OpenCV would fill up a JPEG that is cut short with grey, without a word."""
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(image, "BGR", strict=True, min_width=_EDGE, min_height=_EDGE)
    except ValueError:
        return None
    return pixels


def _decode_png(image: bytes) -> Pixels | None:
    pixels = cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_COLOR)
    return None if pixels is None else pixels.astype(np.uint8, copy=False)


def _arrange(cells: list[Cell], num_columns: int) -> Pixels:
    num_columns = max(1, min(num_columns, len(cells)))
    num_rows = max(1, -(-len(cells) // num_columns))
    step_x, step_y = _EDGE + _GAP, _EDGE + _TEXT_HEIGHT + _GAP
    sheet = np.full((num_rows * step_y + _GAP, num_columns * step_x + _GAP, 3), 255, np.uint8)
    for index, cell in enumerate(cells):
        row, column = divmod(index, num_columns)
        _draw_cell(sheet, cell, left=_GAP + column * step_x, top=_GAP + row * step_y)
    return sheet


def _draw_cell(sheet: Pixels, cell: Cell, *, left: int, top: int) -> None:
    if cell.thumbnail is None:
        right, bottom = left + _EDGE - 1, top + _EDGE - 1
        cv2.rectangle(sheet, (left, top), (right, bottom), _GREY, cv2.FILLED)
        cv2.line(sheet, (left, top), (right, bottom), _RED, 2)
        cv2.line(sheet, (left, bottom), (right, top), _RED, 2)
    else:
        height, width = cell.thumbnail.shape[:2]
        x, y = left + (_EDGE - width) // 2, top + (_EDGE - height) // 2
        sheet[y : y + height, x : x + width] = cell.thumbnail
    baseline = (left, top + _EDGE + _TEXT_HEIGHT - 6)
    cv2.putText(sheet, cell.text, baseline, cv2.FONT_HERSHEY_SIMPLEX, 0.42, _BLACK, 1, cv2.LINE_AA)


def _encode(sheet: Pixels) -> bytes:
    _, data = cv2.imencode(".png", sheet)
    return data.tobytes()
