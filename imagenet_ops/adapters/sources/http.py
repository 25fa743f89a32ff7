"""An archive behind a web server, as one stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from imagenet_ops.adapters.sources import SourceInfo
from imagenet_ops.errors import ConfigError, DataError, SourceUnavailable

_BLOCK_BYTES = 2**20
_TIMEOUT = httpx.Timeout(60.0, connect=20.0)  # seconds without a byte, not for the whole
_MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504})


class HttpSource:
    """Any URL that a GET answers with the archive itself."""

    def __init__(self, url: str) -> None:
        try:
            address = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ConfigError(f"source {url.rpartition('@')[2]!r}: {error}") from None
        if address.userinfo:
            raise ConfigError(f"source on {address.host}: no user or password in a URL: it would stand in every log")
        if not address.host:
            raise ConfigError(f"source {url!r}: names no host")
        self._url = url

    def inspect(self) -> SourceInfo:
        with self._errors(), httpx.Client(follow_redirects=True, timeout=_TIMEOUT) as client:
            response = client.head(self._url)
            self._check(response)
        length = response.headers.get("content-length")
        known = [response.headers.get(name, "") for name in ("etag", "last-modified")]
        return SourceInfo(":".join([length or "", *known]), int(length) if length else None)

    @contextmanager
    def open(self) -> Iterator[Iterator[bytes]]:
        headers = {"accept-encoding": "identity"}  # the archive's own bytes, whose length can be checked
        with (
            self._errors(),
            httpx.Client(follow_redirects=True, timeout=_TIMEOUT) as client,
            client.stream("GET", self._url, headers=headers) as response,
        ):
            self._check(response)
            yield response.iter_raw(_BLOCK_BYTES)

    def _check(self, response: httpx.Response) -> None:
        status = f"{response.status_code} {response.reason_phrase}"
        if response.status_code in _MAY_PASS:
            raise SourceUnavailable(f"{self._url}: the server answered {status}")
        if not response.is_success:
            raise DataError(f"{self._url}: the server answered {status}; check the address and what it asks for")
        if response.headers.get("content-type", "").startswith("text/html"):
            raise DataError(f"{self._url}: a web page came in place of an archive (a login or error page?)")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except httpx.TooManyRedirects as error:
            raise DataError(f"{self._url}: the server redirects without end") from error
        except httpx.TransportError as error:
            raise SourceUnavailable(f"{self._url}: {error or type(error).__name__}") from error
