"""untar: the index holds every image as the byte range that it is, and counts everything else by its reason."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from imagenet_ops.errors import DataError
from imagenet_ops.manifests import ArchiveManifest, ClassCount, ImageIndex
from tests.builders import class_folders, class_tars, jpeg, png, tar, tar_member, tar_of
from tests.fakes import MemoryStore
from tests.tiny_dataset import Pipeline, settings, tiny_classes, write_archives

REPLACED = "replaced by a later member of the same name"


def untar(folder: Path, *archives: bytes, layout: str = "class_tars") -> Pipeline:
    return Pipeline(MemoryStore(), settings(write_archives(folder, *archives), layout=layout)).run("untar")


def rows(pipeline: Pipeline, table: str) -> list[dict[str, Any]]:
    parts = pipeline.manifest("untar", ImageIndex).parts
    keys = [(part.index if table == "index" else part.rejected).key for part in parts]
    tables = [pl.read_parquet(io.BytesIO(pipeline.data("untar", key.removeprefix("data/")))) for key in keys]
    return pl.concat(tables).to_dicts()


def images(pipeline: Pipeline) -> dict[tuple[str, str], bytes]:
    """(synset, name) → the bytes at the place that the index gives."""
    archives = pipeline.manifest("download", ArchiveManifest).archives
    found = {}
    for row in rows(pipeline, "index"):
        key = pipeline.data_key("download", archives[row["archive"]].key.removeprefix("data/"))
        assert (row["synset"], row["name"]) not in found
        found[row["synset"], row["name"]] = pipeline.store.get_range(key, row["offset"], row["num_bytes"])
    return found


def rejected(pipeline: Pipeline) -> list[tuple[str, str, str]]:
    return [(row["synset"], row["name"], row["reason"]) for row in rows(pipeline, "rejected")]


def counts(pipeline: Pipeline) -> list[tuple[str, int, int]]:
    classes = [count for part in pipeline.manifest("untar", ImageIndex).parts for count in part.classes]
    return [(count.synset, count.num_images, count.num_rejected) for count in classes]


TINY_IMAGES = {
    (synset, name): data
    for synset, members in tiny_classes().items()
    for name, data in members.items()
    if name not in ("notes.txt", "empty.JPEG")
}


@pytest.mark.parametrize("layout", ["class_tars", "class_folders"])
def test_the_index_is_of_every_image_and_of_nothing_else(tmp_path: Path, layout: str) -> None:
    archive = class_tars(tiny_classes()) if layout == "class_tars" else class_folders(tiny_classes())
    pipeline = untar(tmp_path, archive, layout=layout)
    assert images(pipeline) == TINY_IMAGES
    assert rejected(pipeline) == [("n01", "empty.JPEG", "empty"), ("n01", "notes.txt", "text")]
    manifest = pipeline.manifest("untar", ImageIndex)
    assert manifest.num_images == 14
    assert manifest.num_rejected_by_reason == {"empty": 1, "text": 1}
    assert counts(pipeline) == [("n01", 6, 2), ("n02", 6, 0), ("n03", 2, 0)]


def test_the_index_is_sorted_and_knows_format_and_size(tmp_path: Path) -> None:
    classes = {"n02": {"b": jpeg(30, 20), "a": png(7, 9)}, "n01": {"c": jpeg(8, 8)}}
    found = rows(untar(tmp_path, class_tars(classes)), "index")
    assert [(row["synset"], row["name"], row["format"], row["width"], row["height"]) for row in found] == [
        ("n01", "c", "jpeg", 8, 8),
        ("n02", "a", "png", 7, 9),
        ("n02", "b", "jpeg", 30, 20),
    ]


def test_a_class_spread_over_two_archives_is_one_class(tmp_path: Path) -> None:
    first, second = {"n01": {"a": jpeg(16, 16, 1)}}, {"n01": {"b": jpeg(16, 16, 2)}, "n02": {"c": jpeg(16, 16, 3)}}
    pipeline = untar(tmp_path, class_tars(first), class_tars(second))
    assert images(pipeline) == {
        ("n01", "a"): first["n01"]["a"],
        ("n01", "b"): second["n01"]["b"],
        ("n02", "c"): second["n02"]["c"],
    }
    assert counts(pipeline) == [("n01", 2, 0), ("n02", 1, 0)]


@pytest.mark.parametrize("layout", ["class_tars", "class_folders"])
def test_of_members_of_one_name_the_last_counts_in_one_archive_as_in_two(tmp_path: Path, layout: str) -> None:
    old, new, newest = jpeg(16, 16, 1), jpeg(16, 17, 2), jpeg(16, 18, 3)
    prefix = "" if layout == "class_tars" else "n01/"
    twice = tar_of(*[(tar_member(f"{prefix}a", len(data)), data) for data in (old, new)])
    once = tar({f"{prefix}a": newest})
    if layout == "class_tars":
        twice, once = tar({"n01.tar": twice}), tar({"n01.tar": once})
    one_archive = untar(tmp_path / "one", twice, layout=layout)
    assert images(one_archive) == {("n01", "a"): new}
    assert rejected(one_archive) == [("n01", "a", REPLACED)]
    two_archives = untar(tmp_path / "two", twice, once, layout=layout)
    assert images(two_archives) == {("n01", "a"): newest}
    assert rejected(two_archives) == [("n01", "a", REPLACED)] * 2
    assert counts(two_archives) == [("n01", 1, 2)]


def test_a_later_member_that_is_no_image_still_replaces_the_earlier_one(tmp_path: Path) -> None:
    data = jpeg(16, 16)
    members = tar_of((tar_member("a", len(data)), data), (tar_member("a"), b""))
    pipeline = untar(tmp_path, tar({"n01.tar": members}))
    assert images(pipeline) == {}
    assert rejected(pipeline) == [("n01", "a", REPLACED), ("n01", "a", "empty")]


def test_strays_beside_the_class_tars_are_rejected_and_belong_to_no_class(tmp_path: Path) -> None:
    archive = tar({"readme.txt": b"hello", "n01.tar": tar({"a": jpeg(16, 16)}), "stray.JPEG": jpeg(16, 16)})
    pipeline = untar(tmp_path, archive)
    assert list(images(pipeline)) == [("n01", "a")]
    assert rejected(pipeline) == [("", "readme.txt", "not a class tar"), ("", "stray.JPEG", "not a class tar")]
    assert counts(pipeline) == [("n01", 1, 0)]
    assert pipeline.manifest("untar", ImageIndex).num_rejected_by_reason == {"not a class tar": 2}


def test_strays_outside_the_class_folders_are_rejected_and_belong_to_no_class(tmp_path: Path) -> None:
    archive = tar({"stray.JPEG": jpeg(16, 16), "./n01/a": jpeg(16, 16), "photos/n02/b": jpeg(16, 16)})
    pipeline = untar(tmp_path, archive, layout="class_folders")
    assert list(images(pipeline)) == [("n01", "a"), ("n02", "b")]
    assert rejected(pipeline) == [("", "stray.JPEG", "in no class folder")]
    assert counts(pipeline) == [("n01", 1, 0), ("n02", 1, 0)]


def test_links_and_folders_in_a_class_are_no_images(tmp_path: Path) -> None:
    data = jpeg(16, 16)
    members = tar_of(
        (tar_member("inner/", kind=tarfile.DIRTYPE), b""),
        (tar_member("inner/a", len(data)), data),
        (tar_member("soft", kind=tarfile.SYMTYPE, link="inner/a"), b""),
        (tar_member("hard", kind=tarfile.LNKTYPE, link="inner/a"), b""),
    )
    pipeline = untar(tmp_path, tar({"n01.tar": members}))
    assert images(pipeline) == {("n01", "inner/a"): data}
    assert rejected(pipeline) == [("n01", "hard", "hard link"), ("n01", "soft", "symbolic link")]


def test_a_class_tar_without_members_is_a_class_without_images(tmp_path: Path) -> None:
    pipeline = untar(tmp_path, class_tars({"n01": {}, "n02": {"a": jpeg(16, 16)}}))
    assert counts(pipeline) == [("n01", 0, 0), ("n02", 1, 0)]


def test_every_other_content_has_its_reason(tmp_path: Path) -> None:
    whole = jpeg(16, 16)
    members = {
        "bitmap.JPEG": b"BM" + bytes(100),
        "cut.JPEG": whole[:10],
        "cut.PNG": png(16, 16)[:20],
        "gif.JPEG": b"GIF89a" + bytes(100),
        "page.JPEG": b"<html>Not found</html>",
        "packed.JPEG": gzip.compress(b"x"),
        "zeros.JPEG": bytes(1000),
    }
    pipeline = untar(tmp_path, class_tars({"n01": members | {"good.JPEG": whole}}))
    assert {name: reason for _, name, reason in rejected(pipeline)} == {
        "bitmap.JPEG": "BMP",
        "cut.JPEG": "JPEG cut or damaged in its header",
        "cut.PNG": "PNG cut in its header",
        "gif.JPEG": "GIF",
        "page.JPEG": "text",
        "packed.JPEG": "gzip",
        "zeros.JPEG": "unknown content",
    }
    assert list(images(pipeline)) == [("n01", "good.JPEG")]


def test_a_header_is_never_read_on_into_the_next_member(tmp_path: Path) -> None:
    """The first member's only segment claims to end where the second one's bytes begin: a tar header further on."""
    first = b"\xff\xd8\xff\xe1" + (2 * 512 - 4).to_bytes(2, "big")
    second = b"\xff\xc0\x00\x11\x08" + bytes([0, 16, 0, 16]) + bytes(20)
    pipeline = untar(tmp_path, class_tars({"n01": {"first": first.ljust(512, b"\0"), "second": second}}))
    assert images(pipeline) == {}
    assert rejected(pipeline)[0] == ("n01", "first", "JPEG cut or damaged in its header")


def test_more_classes_than_a_group_holds_become_several_parts(tmp_path: Path) -> None:
    image = jpeg(8, 8)
    classes = {f"n{number:03d}": {"a": image} for number in range(300)}
    pipeline = untar(tmp_path, class_tars(classes))
    parts = pipeline.manifest("untar", ImageIndex).parts
    assert [len(part.classes) for part in parts] == [128, 128, 44]
    assert [count for part in parts for count in part.classes] == [
        ClassCount(synset=synset, num_images=1, num_rejected=0) for synset in classes
    ]
    assert images(pipeline) == {(synset, "a"): image for synset in classes}


@pytest.mark.parametrize("name", ["a b.JPEG", "größe_ß_日本.JPEG", "tab\tand\nnewline", "x" * 200, "%41;'\"$(id)"])
def test_a_name_is_kept_as_it_is(tmp_path: Path, name: str) -> None:
    data = jpeg(16, 16)
    members = tar_of((tar_member(name, len(data)), data), tar_format="pax")
    assert images(untar(tmp_path, tar({"n01.tar": members}))) == {("n01", name): data}


def test_a_gzipped_archive_is_told_in_so_many_words(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"archive data/000_archive_0\.tar: expected an uncompressed tar"):
        untar(tmp_path, gzip.compress(class_tars(tiny_classes())))


def test_an_empty_file_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected an uncompressed tar"):
        untar(tmp_path, b"")


def test_an_archive_without_any_class_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="tiny: the archives hold no class at all in layout class_folders"):
        untar(tmp_path, tar({"stray": jpeg(16, 16)}), layout="class_folders")
    with pytest.raises(DataError, match="the archives hold no class at all in layout class_tars"):
        untar(tmp_path / "other", class_folders(tiny_classes()))


def test_a_class_tar_that_is_cut_short_is_told_by_its_name(tmp_path: Path) -> None:
    whole = tar({"a": jpeg(64, 64), "b": jpeg(64, 64)})
    for num_bytes in (len(whole) - 1024, len(whole) - 1500, 700):
        archive = tar({"n01.tar": tar({"a": jpeg(16, 16)}), "n02.tar": whole[:num_bytes]})
        with pytest.raises(DataError, match=r"class tar n02\.tar: cut short"):
            untar(tmp_path / str(num_bytes), archive)


def test_an_archive_that_is_cut_short_is_told_by_its_name(tmp_path: Path) -> None:
    whole = class_tars(tiny_classes())
    with pytest.raises(DataError, match=r"archive data/000_archive_0\.tar: cut short"):
        untar(tmp_path, whole[: len(whole) // 2])
