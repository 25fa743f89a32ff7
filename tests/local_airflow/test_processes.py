from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from imagenet_ops.local_airflow.environment import MARKER_VARIABLE
from imagenet_ops.local_airflow.errors import ComponentDied, LocalAirflowError
from imagenet_ops.local_airflow.process_table import is_alive
from imagenet_ops.local_airflow.processes import Components, read_record, stop_recorded
from imagenet_ops.local_airflow.settings import HomeLayout

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

MARKER = f"of-{os.getpid()}"
ENVIRONMENT = {"PATH": os.environ["PATH"], MARKER_VARIABLE: MARKER}
URL = "http://127.0.0.1:1"


@pytest.fixture
def layout(tmp_path: Path) -> HomeLayout:
    return HomeLayout(tmp_path)


@pytest.fixture
def components(layout: HomeLayout) -> Iterator[Components]:
    components = Components(layout, marker=MARKER, url=URL)
    yield components
    components.stop()


def test_each_started_process_is_in_the_record(layout: HomeLayout, components: Components) -> None:
    components.start("api-server", ["sleep", "600"], ENVIRONMENT)
    components.start("scheduler", ["sleep", "600"], ENVIRONMENT)
    record = read_record(layout)

    assert record is not None
    assert (record.url, record.marker, record.owner.pid) == (URL, MARKER, os.getpid())
    assert list(record.components) == ["api-server", "scheduler"]
    assert all(is_alive(identity) for identity in record.components.values())
    assert layout.processes.stat().st_mode & 0o777 == 0o600


def test_another_process_stops_from_the_record_what_its_owner_left_behind(
    layout: HomeLayout, components: Components
) -> None:
    components.start("scheduler", ["sh", "-c", "sleep 600 & wait"], ENVIRONMENT)
    record = read_record(layout)
    assert record is not None
    stop_recorded(layout, record)

    assert not any(is_alive(identity) for identity in record.components.values())
    assert read_record(layout) is None


def test_a_component_that_ends_is_named_with_the_end_of_its_log(components: Components) -> None:
    components.start("triggerer", ["sh", "-c", "echo no such table; exit 3"], ENVIRONMENT)
    deadline = time.monotonic() + 20
    with pytest.raises(ComponentDied, match="triggerer ended with code 3") as caught:
        while time.monotonic() < deadline:
            components.check()
            time.sleep(0.02)

    assert "no such table" in str(caught.value)


def test_a_step_that_fails_says_what_it_wrote(components: Components) -> None:
    with pytest.raises(LocalAirflowError, match="db-migrate ended with code 1") as caught:
        components.run("db-migrate", ["sh", "-c", "echo disk full; exit 1"], ENVIRONMENT)

    assert "disk full" in str(caught.value)


def test_components_run_in_sessions_of_their_own_so_that_ctrl_c_does_not_reach_them(
    layout: HomeLayout, components: Components
) -> None:
    components.start("api-server", ["sleep", "600"], ENVIRONMENT)
    record = read_record(layout)

    assert record is not None
    pid = record.components["api-server"].pid
    assert os.getsid(pid) == pid
