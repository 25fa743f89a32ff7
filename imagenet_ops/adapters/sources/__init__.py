"""Where archives come from, chosen by URL.

file:///data/fall11_whole.tar       an archive
file:///data/photographs            a folder of class folders, streamed as one tar
https://host/ILSVRC2012.tar         one stream
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from imagenet_ops.errors import ConfigError


@dataclass(frozen=True)
class SourceInfo:
    """`identity` changes when the content may have; `num_bytes` is None where the source does not say."""

    identity: str
    num_bytes: int | None


class Source(Protocol):
    """Raises SourceUnavailable where trying again may help, DataError where the source is not what it should be."""

    def inspect(self) -> SourceInfo:
        """Asks without fetching."""

    def open(self) -> AbstractContextManager[Iterator[bytes]]:
        """The bytes, from front to back."""


def open_source(url: str) -> Source:
    """The source at `url`. Raises ConfigError for a scheme or path that is not one of those above."""
    scheme = url.partition(":")[0].lower()
    if scheme == "file":
        from imagenet_ops.adapters.sources.file import FileSource, FolderSource

        path = Path(unquote(urlsplit(url).path))
        if not path.exists():
            raise ConfigError(f"source {url}: no such file or folder")
        return FolderSource(path) if path.is_dir() else FileSource(path)
    if scheme in ("http", "https"):
        from imagenet_ops.adapters.sources.http import HttpSource

        return HttpSource(url)
    raise ConfigError(f"source {url!r}: expected a file://, http:// or https:// URL")
