from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from imagenet_ops.local_airflow.process_table import (
    ProcessIdentity,
    find_children,
    find_family,
    identify,
    is_alive,
    send_signal,
    stop_family,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

MARKER = f"TEST_MARKER=of-{os.getpid()}"

# A parent and a grandchild in a session of its own, both deaf to SIGTERM; the pids go to the file, last of all.
STUBBORN_TREE = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[1] == "child":
    with open(sys.argv[2] + ".partial", "w") as file:
        file.write(f"{os.getppid()} {os.getpid()}")
    os.rename(sys.argv[2] + ".partial", sys.argv[2])
else:
    subprocess.Popen([sys.executable, __file__, "child", sys.argv[2]], start_new_session=True)
time.sleep(600)
"""


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start_process(*command: str, marker: str = "") -> subprocess.Popen[bytes]:
        name, _, value = marker.partition("=")
        environment = {**os.environ, **({name: value} if name else {})}
        started.append(subprocess.Popen(command, env=environment, start_new_session=True))
        return started[-1]

    yield start_process
    for process in started:
        process.kill()
        process.wait()


def identity_of(pid: int) -> ProcessIdentity:
    identity = identify(pid)
    assert identity is not None
    return identity


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text()


def test_a_tree_that_ignores_sigterm_is_killed_with_a_grandchild_in_its_own_session(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    script = tmp_path / "tree.py"
    script.write_text(STUBBORN_TREE)
    tree = start(sys.executable, str(script), "parent", str(tmp_path / "pids"))
    parent, grandchild = (identity_of(int(pid)) for pid in wait_for(tmp_path / "pids").split())

    stop_family([identity_of(tree.pid)], MARKER, grace_seconds=0.3)

    assert not is_alive(parent)
    assert not is_alive(grandchild)


def test_an_orphan_that_only_the_marker_knows_is_stopped(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    script = tmp_path / "tree.py"
    script.write_text(STUBBORN_TREE)
    tree = start(sys.executable, str(script), "parent", str(tmp_path / "pids"), marker=MARKER)
    orphan = identity_of(int(wait_for(tmp_path / "pids").split()[1]))
    tree.kill()
    tree.wait()

    assert find_family([], MARKER) == {orphan}
    stop_family([], MARKER, grace_seconds=0.3)
    assert not is_alive(orphan)


def test_a_process_that_obeys_sigterm_is_not_killed(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = start("sleep", "600")
    stop_family([identity_of(process.pid)], MARKER, grace_seconds=20)

    assert process.wait() == -signal.SIGTERM


def test_a_child_that_is_cut_off_is_killed_though_it_would_obey(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    script = "import subprocess; print(subprocess.Popen(['sleep', '600']).wait(), flush=True)"
    parent = identity_of(start(sys.executable, "-c", script).pid)
    while not (children := find_children(parent)):
        time.sleep(0.02)

    stop_family([parent], MARKER, grace_seconds=20, cut_off=children)

    assert not any(is_alive(identity) for identity in (parent, *children))


def test_a_pid_that_was_used_again_is_left_alone(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = start("sleep", "600")
    former = replace(identity_of(process.pid), started="another-boot/1")

    send_signal(former, signal.SIGKILL)
    stop_family([former], MARKER, grace_seconds=0.1)

    assert process.poll() is None
    assert find_children(former) == set()


def test_a_process_of_another_marker_is_left_alone(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = start("sleep", "600", marker=f"{MARKER}0")
    stop_family([], MARKER, grace_seconds=0.1)

    assert process.poll() is None


def test_a_zombie_counts_as_ended(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = start("sleep", "600")
    identity = identity_of(process.pid)
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody took its status

    assert not is_alive(identity)
    assert identify(process.pid) is None


def test_stopping_nothing_returns_at_once() -> None:
    stop_family([], MARKER, grace_seconds=60)
