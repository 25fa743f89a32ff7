"""Airflow's REST API as calls: a token that is renewed, and connection errors that are tried again, a few times."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from imagenet_ops.local_airflow.errors import LocalAirflowError, RestError

_PAGE = 100  # the API's own maximum
_RETRY_WAITS_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0)
_TIMEOUT_SECONDS = 60.0  # a busy machine answers late


class RestConnection:
    """Logs in at the first call, and again when its token has run out. `transport` is for tests."""

    def __init__(self, url: str, username: str, password: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._login = {"username": username, "password": password}
        # No proxy from the shell's variables: it could not reach this machine's loopback.
        self._http = httpx.Client(base_url=url, timeout=_TIMEOUT_SECONDS, trust_env=False, transport=transport)

    def close(self) -> None:
        self._http.close()

    def call(
        self, method: str, path: str, *, params: Mapping[str, str | int] | None = None, body: object = None
    ) -> Any:
        """The JSON, None for an empty answer. Raises RestError for a refusal, LocalAirflowError for no answer."""
        if "Authorization" not in self._http.headers:
            self._renew_token()
        answer = self._send(method, path, params=params, body=body)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self._renew_token()
            answer = self._send(method, path, params=params, body=body)
        return _decode(answer)

    def pages(self, path: str, field: str) -> Iterator[Any]:
        offset = 0
        while True:
            page = self.call("GET", path, params={"limit": _PAGE, "offset": offset})
            yield from page[field]
            offset += len(page[field])
            if not page[field] or offset >= page["total_entries"]:
                return

    def _renew_token(self) -> None:
        self._http.headers.pop("Authorization", None)
        answer = _decode(self._send("POST", "/auth/token", params=None, body=self._login))
        self._http.headers["Authorization"] = f"Bearer {answer['access_token']}"

    def _send(self, method: str, path: str, *, params: Mapping[str, str | int] | None, body: object) -> httpx.Response:
        # What was never sent may be sent again; what was sent and got no answer only if it changes nothing.
        transient = httpx.TransportError if method == "GET" else httpx.ConnectError
        for wait_seconds in (*_RETRY_WAITS_SECONDS, None):
            try:
                return self._http.request(method, path, params=params, json=body)
            except httpx.TransportError as error:
                if wait_seconds is None or not isinstance(error, transient):
                    raise LocalAirflowError(f"{method} {self._http.base_url}{path}: no answer: {error!r}") from error
                time.sleep(wait_seconds * random.uniform(0.5, 1.5))
        raise AssertionError("the last try returns or raises")


def _decode(answer: httpx.Response) -> Any:
    if answer.is_success:
        return answer.json() if answer.content else None
    request = answer.request
    message = f"{request.method} {request.url.path}: {answer.status_code} {answer.text[:2000]}"
    raise RestError(message, answer.status_code)
