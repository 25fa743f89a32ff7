"""download: the archives, from wherever they are, into the store, with size and checksums checked on the way."""

from __future__ import annotations

import hashlib
import logging
import re
from urllib.parse import unquote, urlsplit

from imagenet_ops.adapters.sources import SourceInfo, open_source
from imagenet_ops.errors import ChecksumMismatch, SourceUnavailable
from imagenet_ops.manifests import ArchiveManifest, StoredObject
from imagenet_ops.settings import Settings, SourceSettings
from imagenet_ops.stages.stage import Stage, StageContext, StageRun

log = logging.getLogger(__name__)
_MAX_NAME_CHARS = 100  # a file system allows 255, and a write under way has a longer name


class DownloadSettings(Settings):
    """The sources by identity: a checksum from the catalogue, or what the source says of itself."""

    archives: list[str]
    synset_names: str | None


def _read_settings(context: StageContext) -> DownloadSettings:
    dataset = context.dataset
    return DownloadSettings(
        archives=[_identity(source) for source in dataset.sources],
        synset_names=_identity(dataset.synset_names) if dataset.synset_names else None,
    )


def _identity(source: SourceSettings) -> str:
    checksum = source.sha256 or source.md5
    return f"{_safe_name(source.url)}:{checksum or open_source(source.url).inspect().identity}"


def _build(run: StageRun[DownloadSettings]) -> ArchiveManifest:
    dataset = run.context.dataset
    names = dataset.synset_names
    return ArchiveManifest(
        inputs=run.inputs,
        archives=[_fetch(run, source, f"{index:03d}_") for index, source in enumerate(dataset.sources)],
        synset_names=_fetch(run, names, "") if names else None,
    )


def _fetch(run: StageRun[DownloadSettings], settings: SourceSettings, prefix: str) -> StoredObject:
    source = open_source(settings.url)
    info = source.inspect()
    name = prefix + _safe_name(settings.url)
    _check_size(settings, info, settings.url)
    md5 = hashlib.md5(usedforsecurity=False) if settings.md5 else None
    with (
        run.context.progress.task("download", info.num_bytes, "bytes") as progress,
        source.open() as blocks,
        run.store.open_writer(run.keys.data(name)) as writer,
    ):
        for block in blocks:
            writer.write(block)
            progress.advance(len(block))
            if md5:
                md5.update(block)
        if info.num_bytes is not None and writer.num_bytes != info.num_bytes:
            raise SourceUnavailable(f"{settings.url}: {info.num_bytes:,} bytes announced, {writer.num_bytes:,} came")
        _check_digest(settings.url, "SHA-256", settings.sha256, writer.sha256())
        _check_digest(settings.url, "MD5", settings.md5, md5.hexdigest() if md5 else None)
    log.info("downloaded %s: %s bytes", name, f"{writer.num_bytes:,}")
    return run.stored(name, writer)


def _check_size(settings: SourceSettings, info: SourceInfo, url: str) -> None:
    if settings.num_bytes is not None and info.num_bytes not in (None, settings.num_bytes):
        raise ChecksumMismatch(f"{url}: {settings.num_bytes:,} bytes expected, the source has {info.num_bytes:,}")


def _check_digest(url: str, kind: str, expected: str | None, found: str | None) -> None:
    if expected is not None and found != expected:
        raise ChecksumMismatch(f"{url}: {kind} {expected} expected, {found} found; nothing was kept")


def _safe_name(url: str) -> str:
    name = unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[-_MAX_NAME_CHARS:] or "archive"


STAGE = Stage(
    name="download",
    version=1,
    title="Fetch the archives into the store",
    manifest=ArchiveManifest,
    read_settings=_read_settings,
    build=_build,
)
