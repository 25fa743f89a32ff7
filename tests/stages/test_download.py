"""download: what lies in the store is the source byte for byte, or nothing lies there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from imagenet_ops.errors import ChecksumMismatch, ConfigError, DataError
from imagenet_ops.manifests import ArchiveManifest, StoredObject
from tests.builders import jpeg, tar
from tests.fakes import MemoryStore
from tests.tiny_dataset import Pipeline, contents, settings, write_archives

ARCHIVE = tar({"a/b.JPEG": jpeg(16, 16)})


def download(source: Mapping[str, object], **changes: object) -> Pipeline:
    return Pipeline(MemoryStore(), settings([], sources=[source], **changes)).run("download")


def test_archives_come_in_the_order_of_the_settings_and_byte_for_byte(tmp_path: Path) -> None:
    archives = [ARCHIVE, tar({"c/d.JPEG": b"e"}), b""]
    pipeline = Pipeline(MemoryStore(), settings(write_archives(tmp_path, *archives))).run("download")
    manifest = pipeline.manifest("download", ArchiveManifest)
    assert manifest == ArchiveManifest(
        inputs={},
        archives=[
            StoredObject(
                key=f"data/00{index}_archive_{index}.tar",
                num_bytes=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
            )
            for index, data in enumerate(archives)
        ],
        synset_names=None,
    )
    for data, stored in zip(archives, manifest.archives, strict=True):
        assert pipeline.data("download", stored.key.removeprefix("data/")) == data


def test_the_table_of_names_comes_with_the_archives(tmp_path: Path) -> None:
    (archive,) = write_archives(tmp_path, ARCHIVE)
    table = tmp_path / "names.tsv"
    table.write_text("n01\tKäfer\n", encoding="utf-8")
    pipeline = download({"url": archive.as_uri()}, synset_names={"url": table.as_uri()})
    names = pipeline.manifest("download", ArchiveManifest).synset_names
    assert names is not None and names.key == "data/names.tsv"
    assert pipeline.data("download", "names.tsv") == table.read_bytes()


def test_checksums_and_size_that_fit_are_accepted(tmp_path: Path) -> None:
    (path,) = write_archives(tmp_path, ARCHIVE)
    download(
        {
            "url": path.as_uri(),
            "sha256": hashlib.sha256(ARCHIVE).hexdigest(),
            "md5": hashlib.md5(ARCHIVE).hexdigest(),
            "num_bytes": len(ARCHIVE),
        }
    )


@pytest.mark.parametrize(
    ("promise", "told"),
    [
        ({"sha256": "0" * 64}, f"SHA-256 {'0' * 64} expected, {hashlib.sha256(ARCHIVE).hexdigest()} found"),
        ({"md5": "0" * 32}, f"MD5 {'0' * 32} expected, {hashlib.md5(ARCHIVE).hexdigest()} found"),
        ({"num_bytes": 5}, f"5 bytes expected, the source has {len(ARCHIVE):,}"),
    ],
    ids=["sha256", "md5", "size"],
)
def test_an_archive_that_is_not_the_promised_one_leaves_nothing(
    tmp_path: Path, promise: dict[str, object], told: str
) -> None:
    (path,) = write_archives(tmp_path, ARCHIVE)
    pipeline = Pipeline(MemoryStore(), settings([], sources=[{"url": path.as_uri(), **promise}]))
    with pytest.raises(ChecksumMismatch, match=told) as caught:
        pipeline.run("download")
    assert path.as_uri() in str(caught.value)
    assert contents(pipeline.store) == {}


def test_with_a_checksum_the_age_of_the_source_does_not_matter(tmp_path: Path) -> None:
    (path,) = write_archives(tmp_path, ARCHIVE)
    source = {"url": path.as_uri(), "sha256": hashlib.sha256(ARCHIVE).hexdigest()}
    first = download(source)
    path.touch()
    assert download(source).keys == first.keys


def test_without_a_checksum_a_younger_source_is_fetched_again(tmp_path: Path) -> None:
    (path,) = write_archives(tmp_path, ARCHIVE)
    first = download({"url": path.as_uri()})
    path.touch()
    assert download({"url": path.as_uri()}).keys != first.keys


def test_a_source_that_is_not_there_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        download({"url": (tmp_path / "missing.tar").as_uri()})


def test_a_name_with_odd_characters_becomes_a_harmless_key(tmp_path: Path) -> None:
    path = tmp_path / "..für mich & dich?.tar"
    path.write_bytes(ARCHIVE)
    (stored,) = download({"url": path.as_uri()}).manifest("download", ArchiveManifest).archives
    assert stored.key == "data/000_f_r_mich___dich_.tar"


def test_a_folder_of_class_folders_becomes_one_archive_that_can_be_indexed(tmp_path: Path) -> None:
    folder = tmp_path / "photographs"
    for synset in ("n01", "n02"):
        (folder / synset).mkdir(parents=True)
        for number in range(4):
            (folder / synset / f"{number}.JPEG").write_bytes(jpeg(16, 16, seed=number))
    pipeline = Pipeline(MemoryStore(), settings([folder], layout="class_folders")).run("verify")
    assert len(pipeline.manifest("download", ArchiveManifest).archives) == 1


def test_a_link_that_leads_nowhere_in_a_folder_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "photographs" / "n01"
    folder.mkdir(parents=True)
    (folder / "gone.JPEG").symlink_to("nowhere.JPEG")
    with pytest.raises(DataError, match="a link to nothing"):
        download({"url": folder.parent.as_uri()}, layout="class_folders")
