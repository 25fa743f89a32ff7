"""A gang runs whole or not at all, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from imagenet_ops.adapters.hosts import RunningProcess, local
from imagenet_ops.adapters.hosts.local import LocalHost
from imagenet_ops.domain.cluster import GangPlan, ProcessPlan, Role
from imagenet_ops.errors import ProcessFailed
from imagenet_ops.stages import gang
from imagenet_ops.stages.gang import run_gang
from tests.process_life import is_alive, read_pid, wait_until, wait_until_dead

TELL = """
import os, pathlib, signal, subprocess, sys, time
path = pathlib.Path(sys.argv[1])
path.with_suffix(".partial").write_text(f"{os.getpid()}\\n")
path.with_suffix(".partial").rename(path)
def wait_for(num_files, pattern="*.pid"):
    while len(list(path.parent.glob(pattern))) < num_files:
        time.sleep(0.01)
"""
SLEEP = "time.sleep(60)"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang, "_SECONDS_BETWEEN_POLLS", 0.05)
    monkeypatch.setattr(local, "_SECONDS_TO_END", 1.0)


@dataclass
class Gang:
    """A gang whose processes tell their numbers in a folder, and then do what their texts say."""

    folder: Path
    processes: list[ProcessPlan] = field(default_factory=list)
    num_polls: int = 0

    def add(self, role: Role, text: str, host: str = "localhost") -> None:
        index = sum(process.role == role for process in self.processes)
        argv = (sys.executable, "-c", TELL + text, str(self.folder / f"{role}_{index}.pid"))
        self.processes.append(ProcessPlan(role, index, host, {}, argv))

    def run(self) -> None:
        run_gang(GangPlan(tuple(self.processes)), {"localhost": LocalHost(self.folder)}, self._count_poll)

    def pid(self, name: str) -> int:
        return read_pid(self.folder / f"{name}.pid")

    def pids(self) -> list[int]:
        return [self.pid(process.name) for process in self.processes]

    def _count_poll(self) -> None:
        self.num_polls += 1


@pytest.fixture
def three(tmp_path: Path) -> Gang:
    """A scheduler and a server that would run for a minute; workers are up to the test."""
    gang = Gang(tmp_path)
    gang.add("scheduler", SLEEP)
    gang.add("server", SLEEP)
    return gang


def test_a_gang_whose_workers_end_well_ends_well_and_nothing_of_it_stays(three: Gang) -> None:
    three.add("worker", "wait_for(4); time.sleep(0.3)")
    three.add("worker", "wait_for(4)")
    start = time.monotonic()
    three.run()
    assert 0.3 <= time.monotonic() - start < 10
    assert three.num_polls >= 2
    wait_until_dead(three.pids(), seconds=1)


def test_the_end_of_the_last_worker_is_waited_for(three: Gang, tmp_path: Path) -> None:
    three.add("worker", "pass")
    three.add("worker", f"time.sleep(0.5); pathlib.Path({str(tmp_path / 'done')!r}).touch()")
    three.run()
    assert (tmp_path / "done").exists()


def test_one_more_poll_follows_the_end_of_the_last_worker(three: Gang, tmp_path: Path) -> None:
    """What the worker wrote in its last moment is seen."""
    seen: list[bool] = []
    three.add("worker", f"time.sleep(0.3); pathlib.Path({str(tmp_path / 'done')!r}).touch()")
    run_gang(
        GangPlan(tuple(three.processes)),
        {"localhost": LocalHost(tmp_path)},
        lambda: seen.append((tmp_path / "done").exists()),
    )
    assert seen[-1] is True


@pytest.mark.parametrize("role", ["scheduler", "server", "worker"])
def test_a_process_that_ends_badly_takes_the_others_with_it_and_its_log_is_told(tmp_path: Path, role: Role) -> None:
    gang = Gang(tmp_path)
    bad = "wait_for(4); print('no memory left', flush=True); sys.exit(3)"
    for position, each in enumerate(("scheduler", "server", "worker", "worker")):
        gang.add(each, bad if each == role and position < 3 else SLEEP)  # type: ignore[arg-type]
    start = time.monotonic()
    with pytest.raises(ProcessFailed) as caught:
        gang.run()
    assert time.monotonic() - start < 10
    assert str(caught.value) == (f"{role}_0 on localhost ended with exit code 3; the end of its log:\nno memory left\n")
    wait_until_dead(gang.pids(), seconds=1)


def test_a_killed_worker_takes_the_others_with_it(three: Gang) -> None:
    three.add("worker", SLEEP)
    three.add("worker", SLEEP)

    def kill_one() -> None:
        three.pids()  # when all run
        os.kill(three.pid("worker_1"), signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(ProcessFailed, match="worker_1 on localhost ended with exit code -9"):
        three.run()
    killer.join()
    wait_until_dead(three.pids(), seconds=1)


def test_a_worker_that_ends_badly_after_the_others_ended_well_is_an_error(three: Gang) -> None:
    three.add("worker", "pass")
    three.add("worker", "time.sleep(0.3); sys.exit(1)")
    with pytest.raises(ProcessFailed, match="worker_1 on localhost ended with exit code 1"):
        three.run()


@pytest.mark.parametrize("role", ["scheduler", "server"])
def test_a_scheduler_or_server_that_leaves_long_before_the_workers_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: Role
) -> None:
    monkeypatch.setattr(gang, "_SECONDS_TO_FOLLOW", 0.5)
    broken = Gang(tmp_path)
    leave = "wait_for(3); print('bye', flush=True)"
    for each in ("scheduler", "server", "worker"):
        broken.add(each, leave if each == role else SLEEP)
    start = time.monotonic()
    with pytest.raises(ProcessFailed, match=f"{role}_0 on localhost left before the workers; the end of its log:\nbye"):
        broken.run()
    assert 0.5 < time.monotonic() - start < 10
    wait_until_dead(broken.pids(), seconds=1)


def test_a_scheduler_that_leaves_a_little_before_the_workers_is_no_error(tmp_path: Path) -> None:
    gang = Gang(tmp_path)
    gang.add("scheduler", "pass")
    gang.add("server", "pass")
    gang.add("worker", "wait_for(3); time.sleep(0.6)")
    gang.run()


def test_when_one_process_cannot_be_started_those_that_were_are_stopped(three: Gang, tmp_path: Path) -> None:
    missing = str(tmp_path / "no_python_here")
    three.processes.append(ProcessPlan("worker", 0, "localhost", {}, (missing, "-c", "pass")))
    three.add("worker", SLEEP)
    with pytest.raises(ProcessFailed, match=r"worker_0 can't be started: .*no_python_here"):
        three.run()
    # Not even the two that were started may have come as far as to tell their numbers.
    wait_until_dead([int(path.read_text()) for path in tmp_path.glob("*.pid") if path.read_text()], seconds=1)
    assert not (tmp_path / "worker_1.pid").exists()


class CountingHost:
    """This machine, of which only the first `most` starts succeed; remembers what it started."""

    def __init__(self, folder: Path, most: int) -> None:
        self._host, self._most = LocalHost(folder), most
        self.started: list[RunningProcess] = []

    def choose_free_port(self) -> int:
        return self._host.choose_free_port()

    def start(self, plan: ProcessPlan) -> RunningProcess:
        if len(self.started) == self._most:
            raise ProcessFailed(f"{plan.name} can't be started: the host is full")
        process = self._host.start(plan)
        self.started.append(process)
        return process


def test_nothing_stays_of_a_gang_of_two_hosts_when_the_second_is_full(tmp_path: Path) -> None:
    gang = Gang(tmp_path)
    gang.add("scheduler", SLEEP, "first")
    gang.add("server", SLEEP, "first")
    for host in ("first", "second", "first", "second"):
        gang.add("worker", SLEEP, host)
    first, second = CountingHost(tmp_path, 99), CountingHost(tmp_path, 1)
    with pytest.raises(ProcessFailed, match="worker_3 can't be started: the host is full"):
        run_gang(GangPlan(tuple(gang.processes)), {"first": first, "second": second}, lambda: None)
    assert [process.plan.name for process in first.started] == ["scheduler_0", "server_0", "worker_0", "worker_2"]
    assert [process.plan.name for process in second.started] == ["worker_1"]
    assert all(process.poll() is not None for process in first.started + second.started)


@pytest.mark.parametrize("error", [RuntimeError("the store is gone"), KeyboardInterrupt()], ids=["error", "Ctrl-C"])
def test_an_error_while_it_is_watched_stops_the_gang(three: Gang, tmp_path: Path, error: BaseException) -> None:
    three.add("worker", SLEEP)

    def fail() -> None:
        three.pids()
        raise error

    with pytest.raises(type(error)):
        run_gang(GangPlan(tuple(three.processes)), {"localhost": LocalHost(tmp_path)}, fail)
    wait_until_dead(three.pids(), seconds=1)


def test_processes_that_ignore_the_stop_are_killed_all_at_the_same_time(tmp_path: Path) -> None:
    gang = Gang(tmp_path)
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN); path.with_suffix('.deaf').touch(); "
    for _ in range(5):
        gang.add("server", stubborn + SLEEP)
    gang.add("worker", "wait_for(5, '*.deaf')")
    ends: list[float] = []

    def note_the_end() -> None:
        ends.append(time.monotonic())

    run_gang(GangPlan(tuple(gang.processes)), {"localhost": LocalHost(tmp_path)}, note_the_end)
    assert 1.0 <= time.monotonic() - ends[-1] < 4.0  # one wait for all five, not one for each
    wait_until_dead(gang.pids(), seconds=1)


def test_a_process_started_by_a_worker_goes_with_the_gang(three: Gang, tmp_path: Path) -> None:
    child_pid = tmp_path / "child"
    start = f"subprocess.Popen([sys.executable, '-c', {TELL + SLEEP!r}, {str(child_pid)!r}])\n"
    three.add("worker", start + "wait_for(1, 'child'); sys.exit(3)")
    with pytest.raises(ProcessFailed, match="worker_0"):
        three.run()
    wait_until_dead([read_pid(child_pid)], seconds=2)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_gang_ends_with_the_process_that_started_it(tmp_path: Path, how: signal.Signals) -> None:
    starter = f"""
import sys
from pathlib import Path
from imagenet_ops.adapters.hosts.local import LocalHost
from imagenet_ops.domain.cluster import GangPlan, ProcessPlan
from imagenet_ops.stages.gang import run_gang
def plan(role, index):
    argv = (sys.executable, "-c", {TELL + SLEEP!r}, f"{{role}}_{{index}}.pid")
    return ProcessPlan(role, index, "localhost", {{}}, argv)
roles = [("scheduler", 0), ("server", 0), ("worker", 0), ("worker", 1)]
run_gang(GangPlan(tuple(plan(*role) for role in roles)), {{"localhost": LocalHost(Path("."))}}, lambda: None)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(gang.__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", starter], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        names = ("scheduler_0", "server_0", "worker_0", "worker_1")
        pids = [read_pid(tmp_path / f"{name}.pid") for name in names]
        assert all(map(is_alive, pids))
        process.send_signal(how)
        wait_until(lambda: process.poll() is not None, "the starter has ended")
        wait_until_dead(pids, seconds=5)
    finally:
        process.kill()
        process.wait()
