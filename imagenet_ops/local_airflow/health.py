"""Waiting until every part of Airflow says itself that it works."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from imagenet_ops.local_airflow.errors import StartTimedOut

_COMPONENTS = ("scheduler", "triggerer", "dag_processor")


def wait_until_healthy(url: str, *, since: datetime, timeout_seconds: float, check: Callable[[], None]) -> None:
    """`check` is called between looks and raises when a process has died. Raises StartTimedOut.

    A heartbeat from before `since` belongs to an Airflow that was killed: it looks alive for half a minute.
    """
    import httpx

    deadline = time.monotonic() + timeout_seconds
    with httpx.Client(base_url=url, trust_env=False, timeout=10) as client:
        while unhealthy := _find_unhealthy(client, since):
            check()
            if time.monotonic() > deadline:
                raise StartTimedOut(f"not healthy after {timeout_seconds:.0f} s: {', '.join(unhealthy)}")
            time.sleep(0.5)


def _find_unhealthy(client: Any, since: datetime) -> list[str]:
    import httpx

    try:
        answer = client.get("/api/v2/monitor/health")
        answer.raise_for_status()
    except httpx.HTTPError:
        return ["api-server"]
    health = answer.json()
    unhealthy = [] if health["metadatabase"]["status"] == "healthy" else ["database"]
    return unhealthy + [name for name in _COMPONENTS if not _is_fresh(health.get(name) or {}, name, since)]


def _is_fresh(part: dict[str, Any], name: str, since: datetime) -> bool:
    heartbeat = part.get(f"latest_{name}_heartbeat")
    return part.get("status") == "healthy" and heartbeat is not None and datetime.fromisoformat(heartbeat) >= since
