"""OPENCV_LOOP FOLDER NUM_PROCESSES: im2rec's own OpenCV calls on every image of a folder, and nothing kept.

No record, no file, no queue: the least that a packer can take that decodes, resizes and encodes each image with OpenCV.
"""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import cv2
import numpy as np

_SHORT_EDGE, _QUALITY = 480, 90


def main(folder: str, num_processes: int) -> None:
    cv2.setNumThreads(1)
    paths = sorted(Path(folder).rglob("*.JPEG"))
    if num_processes == 1:
        transcode_all(paths)
        return
    with multiprocessing.Pool(num_processes) as pool:
        pool.map(transcode_all, [paths[start::num_processes] for start in range(num_processes)])


def transcode_all(paths: list[Path]) -> None:
    for path in paths:
        pixels = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
        height, width = pixels.shape[:2]
        if height > width:
            size = (_SHORT_EDGE, height * _SHORT_EDGE // width)
        else:
            size = (width * _SHORT_EDGE // height, _SHORT_EDGE)
        cv2.imencode(".jpg", cv2.resize(pixels, size), (cv2.IMWRITE_JPEG_QUALITY, _QUALITY))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
