from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from imagenet_ops.local_airflow.errors import AlreadyRunning
from imagenet_ops.local_airflow.home_lock import is_locked, lock_home, stop_home
from imagenet_ops.local_airflow.port import choose_port
from imagenet_ops.local_airflow.processes import Components, read_record
from imagenet_ops.local_airflow.settings import HomeLayout

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

OWNER = """
import sys, time
from pathlib import Path
from imagenet_ops.local_airflow.home_lock import lock_home
from imagenet_ops.local_airflow.processes import Components
from imagenet_ops.local_airflow.settings import HomeLayout
layout = HomeLayout(Path(sys.argv[1]))
lock_home(layout)
Components(layout, marker="of-the-owner", url="http://127.0.0.1:1")
print("ready", flush=True)
time.sleep(600)
"""


def start_owner(home: Path) -> subprocess.Popen[str]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(home)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    return owner


def test_a_second_start_in_the_same_home_is_told_the_address_and_how_to_stop_it(tmp_path: Path) -> None:
    layout = HomeLayout(tmp_path)
    lock = lock_home(layout)
    Components(layout, marker="of-this-test", url="http://127.0.0.1:8080")
    with pytest.raises(AlreadyRunning, match=r"http://127\.0\.0\.1:8080.*make down"):
        lock_home(layout)
    os.close(lock)

    assert not is_locked(layout)


def test_a_killed_owner_leaves_no_lock(tmp_path: Path) -> None:
    with start_owner(tmp_path) as owner:
        assert is_locked(HomeLayout(tmp_path))
        owner.kill()

    assert not is_locked(HomeLayout(tmp_path))


def test_down_asks_a_living_owner_to_stop(tmp_path: Path) -> None:
    said: list[str] = []
    with start_owner(tmp_path) as owner:
        stop_home(HomeLayout(tmp_path), said.append)

    assert said == [f"asking process {owner.pid} to stop", "stopping what an earlier start left behind"]
    assert read_record(HomeLayout(tmp_path)) is None


def test_down_in_a_folder_that_was_never_used_does_nothing(tmp_path: Path) -> None:
    stop_home(HomeLayout(tmp_path / "home"), pytest.fail)

    assert not (tmp_path / "home").exists()


def test_a_taken_port_gives_the_next_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        assert choose_port(port) != port
    assert choose_port(port) == port


def test_port_zero_means_any() -> None:
    assert choose_port(0) > 1024
