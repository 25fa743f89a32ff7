"""Copies of skipped images: a tar that any tool opens, with nothing in its names that could do harm."""

from __future__ import annotations

import io
import tarfile
from pathlib import PurePosixPath

import pytest

from imagenet_ops.adapters import quarantine
from imagenet_ops.adapters.quarantine import QuarantinedImage, write_quarantine
from tests.fakes import MemoryStore


def write(images: list[QuarantinedImage]) -> dict[str, bytes]:
    """Member name → content, as Python's tarfile reads it."""
    store = MemoryStore()
    with store.open_writer("quarantined.tar") as writer:
        write_quarantine(writer, images)
    with tarfile.open(fileobj=io.BytesIO(store.get("quarantined.tar"))) as tar:
        members = {}
        for member in tar:
            content = tar.extractfile(member)
            assert member.isfile() and content is not None
            members[member.name] = content.read()
        return members


def test_every_image_lies_under_its_reason_and_is_listed() -> None:
    images = [
        QuarantinedImage(3, "n01/a.JPEG", "JPEG cut short", b"abc"),
        QuarantinedImage(12, "n02/b.JPEG", "PNG damaged", b""),
    ]
    assert write(images) == {
        "JPEG_cut_short/3_n01_a.JPEG": b"abc",
        "PNG_damaged/12_n02_b.JPEG": b"",
        "skipped.tsv": b"3\tn01/a.JPEG\tJPEG cut short\n12\tn02/b.JPEG\tPNG damaged\n",
    }


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "n01/" + "x" * 300, "a\nb\tc", "-rf", "n01/Löwe \udcff.JPEG", "..", "$(id)"],
)
def test_no_name_leads_out_of_the_folder_or_breaks_a_line(name: str) -> None:
    members = write([QuarantinedImage(7, name, "JPEG cut short", b"abc")])
    (path, listed) = members
    assert PurePosixPath(path).parts[0] == "JPEG_cut_short" and len(PurePosixPath(path).parts) == 2
    assert path.isascii() and len(path) <= 100 and PurePosixPath(path).name.startswith("7_")
    line = members[listed].decode()
    assert line.count("\n") == 1 and line.count("\t") == 2


def test_what_does_not_fit_is_listed_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "MAX_BYTES", 2_000)
    images = [QuarantinedImage(number, f"n01/{number}", "text", bytes(900)) for number in range(3)]
    members = write([*images, QuarantinedImage(3, "n01/3", "gone", None)])
    assert list(members) == ["text/0_n01_0", "skipped.tsv"]
    assert members["skipped.tsv"].count(b"\n") == 4
