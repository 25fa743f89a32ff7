from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from imagenet_ops.local_airflow import rest_connection
from imagenet_ops.local_airflow.errors import LocalAirflowError, RestError
from imagenet_ops.local_airflow.rest_connection import RestConnection
from imagenet_ops.local_airflow.rest_values import DagRun, read_log_text

Handler = Callable[[httpx.Request], httpx.Response]


def connect(handler: Handler) -> tuple[RestConnection, list[str]]:
    """A connection whose requests go to `handler`, and the list of what it was asked; tokens are token-1, token-2…"""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(
            f"{request.method} {request.url.raw_path.decode()} {request.headers.get('Authorization', '')}".strip()
        )
        if request.url.path == "/auth/token":
            assert json.loads(request.content) == {"username": "admin", "password": "word"}
            return httpx.Response(201, json={"access_token": f"token-{sum('auth' in line for line in asked)}"})
        return handler(request)

    return RestConnection("http://airflow", "admin", "word", transport=httpx.MockTransport(answer)), asked


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_connection, "_RETRY_WAITS_SECONDS", (0.0, 0.0))


def test_a_token_is_taken_once_and_renewed_when_it_has_run_out() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        expired = request.url.path == "/late" and request.headers["Authorization"] == "Bearer token-1"
        return httpx.Response(401) if expired else httpx.Response(200, json={})

    connection, asked = connect(handler)
    for path in ("/early", "/late", "/later"):
        connection.call("GET", path)

    assert asked == [
        "POST /auth/token",
        "GET /early Bearer token-1",
        "GET /late Bearer token-1",
        "POST /auth/token",
        "GET /late Bearer token-2",
        "GET /later Bearer token-2",
    ]


def test_all_pages_are_read() -> None:
    items = list(range(250))

    def handler(request: httpx.Request) -> httpx.Response:
        limit, offset = int(request.url.params["limit"]), int(request.url.params["offset"])
        return httpx.Response(200, json={"dags": items[offset : offset + limit], "total_entries": len(items)})

    connection, asked = connect(handler)

    assert list(connection.pages("/dags", "dags")) == items
    assert len(asked) == 4


def test_a_question_is_asked_again_after_a_broken_connection() -> None:
    failures = [httpx.ReadError("broken"), httpx.ConnectError("refused")]

    def handler(request: httpx.Request) -> httpx.Response:
        if failures:
            raise failures.pop()
        return httpx.Response(200, json={"state": "running"})

    assert connect(handler)[0].call("GET", "/run") == {"state": "running"}


def test_an_order_that_may_have_arrived_is_not_given_twice() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("broken")

    connection, asked = connect(handler)
    with pytest.raises(LocalAirflowError, match="POST http://airflow/runs: no answer"):
        connection.call("POST", "/runs", body={})

    assert asked == ["POST /auth/token", "POST /runs Bearer token-1"]


def test_a_server_that_stays_away_is_an_error_after_a_few_tries() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    connection, asked = connect(handler)
    with pytest.raises(LocalAirflowError, match="refused"):
        connection.call("GET", "/run")

    assert len(asked) == 1 + 3


def test_a_refusal_is_an_error_with_its_status_and_reason() -> None:
    connection, _ = connect(lambda request: httpx.Response(409, json={"detail": "run id is taken"}))
    with pytest.raises(RestError, match=r"POST /runs: 409 .*run id is taken") as caught:
        connection.call("POST", "/runs", body={})

    assert caught.value.status == 409


def test_a_run_is_read_from_json() -> None:
    run = DagRun.read(
        {
            "dag_id": "image_dataset",
            "dag_run_id": "manual__1",
            "state": "running",
            "partition_key": None,
            "start_date": "2026-01-02T03:04:05.6Z",
            "end_date": None,
        }
    )

    started = datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)
    assert run == DagRun("image_dataset", "manual__1", "running", None, started, None)


def test_a_log_is_text_with_the_error_under_its_event() -> None:
    failed = {"event": "Task failed", "error_detail": [{"exc_type": "DataError", "exc_value": "no such image"}]}

    assert read_log_text({"content": [{"event": "start"}, failed, "plain"]}) == (
        "start\nTask failed\nDataError: no such image\nplain"
    )
