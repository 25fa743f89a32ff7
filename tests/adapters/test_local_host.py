"""This machine as a host, with real processes."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from imagenet_ops.adapters.hosts import local
from imagenet_ops.adapters.hosts.local import ADDRESS, LocalHost, LocalProcess
from imagenet_ops.domain.cluster import ProcessPlan
from imagenet_ops.errors import ProcessFailed
from tests.process_life import is_alive, read_pid, wait_until, wait_until_dead

# Python text that a test's process begins with: it tells its number, in a file that it is given.
TELL = "import os, pathlib, signal, subprocess, sys, time\npathlib.Path(sys.argv[1]).write_text(f'{os.getpid()}\\n')\n"


class Starter:
    """Starts Python text on a LocalHost."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = LocalHost(folder)
        self.started: list[LocalProcess] = []

    def start(self, text: str, *arguments: str, **environment: str) -> LocalProcess:
        argv = (sys.executable, "-c", text, *arguments)
        process = self.host.start(ProcessPlan("worker", len(self.started), "localhost", environment, argv))
        self.started.append(process)
        return process

    def run(self, text: str, *arguments: str, **environment: str) -> str:
        process = self.start(text, *arguments, **environment)
        wait_until(lambda: process.poll() is not None, "the process has ended")
        assert process.poll() == 0, process.read_log_tail()
        return process.read_log_tail()


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path)
    yield starter
    for process in starter.started:
        process.stop()


def test_a_process_is_seen_running_and_then_with_its_exit_code(starter: Starter) -> None:
    process = starter.start("import sys; sys.stdin.read(); sys.exit(7)")
    codes: list[int | None] = []

    def has_ended() -> bool:
        codes.append(process.poll())
        return codes[-1] is not None

    wait_until(has_ended, "the process has ended")
    assert codes[0] is None and codes[-1] == 7
    assert process.poll() == 7


def test_a_death_by_a_signal_is_its_negative_number(starter: Starter, tmp_path: Path) -> None:
    process = starter.start(TELL + "time.sleep(60)", str(tmp_path / "pid"))
    pid = read_pid(tmp_path / "pid")
    assert process.poll() is None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: process.poll() is not None, "the process has ended")
    assert process.poll() == -signal.SIGKILL


def test_arguments_and_environment_arrive_unchanged(starter: Starter) -> None:
    arguments = ("", "two words", "'\"$(id);*\\", "grüße", "-c", "--")
    shown = starter.run("import os, sys; print(sys.argv[1:], os.environ['X'])", *arguments, X="a b=c")
    assert shown == f"{list(arguments)} a b=c\n"


def test_what_a_process_prints_is_in_its_own_log_with_its_errors(starter: Starter, tmp_path: Path) -> None:
    starter.run("import sys; print('first', flush=True); print('second', file=sys.stderr, flush=True); print('third')")
    starter.run("print('other')")
    assert (tmp_path / "worker_0.log").read_text() == "first\nsecond\nthird\n"
    assert (tmp_path / "worker_1.log").read_text() == "other\n"


def test_the_tail_is_the_end_of_a_long_log_and_odd_bytes_do_no_harm(starter: Starter) -> None:
    tail = starter.run(r"import sys; sys.stdout.buffer.write(b'x' * 100_000 + b'\xff the end')")
    assert tail.endswith("x� the end")
    assert 1000 < len(tail) < 5000


def test_a_process_finds_nothing_on_its_standard_input(starter: Starter) -> None:
    assert starter.run("import sys; print(repr(sys.stdin.read()))") == "''\n"


def test_a_process_sees_the_environment_without_airflows_and_without_a_port(
    starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "a password")
    monkeypatch.setenv("PORT", "8080")
    monkeypatch.setenv("KEPT", "yes")
    shown = starter.run(
        "import os; print(sorted(n for n in os.environ if n.startswith('AIRFLOW') or n in ('PORT', 'KEPT', 'MINE')))",
        MINE="1",
    )
    assert shown == "['KEPT', 'MINE']\n"


def test_a_process_leads_a_session_of_its_own(starter: Starter) -> None:
    """So that Ctrl-C on the terminal is the starter's to handle, and a stop reaches all that it started."""
    assert starter.run("import os; print(os.getsid(0) == os.getpid() == os.getpgrp())") == "True\n"


def test_a_process_that_cannot_be_started_is_told_by_its_name(tmp_path: Path) -> None:
    plan = ProcessPlan("server", 3, "localhost", {}, (str(tmp_path / "no_such_python"),))
    with pytest.raises(ProcessFailed, match=r"server_3 can't be started: .*No such file or directory"):
        LocalHost(tmp_path).start(plan)


def test_a_stop_lets_a_process_end_by_itself(starter: Starter, tmp_path: Path) -> None:
    text = "signal.signal(signal.SIGTERM, lambda *_: (print('goodbye', flush=True), sys.exit(0)))\n"
    tell = TELL.splitlines(keepends=True)
    process = starter.start(tell[0] + text + tell[1] + "time.sleep(60)", str(tmp_path / "pid"))
    read_pid(tmp_path / "pid")
    process.stop()
    assert process.poll() == 0
    assert process.read_log_tail() == "goodbye\n"


def test_a_process_that_ignores_the_stop_is_killed(
    starter: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_SECONDS_TO_END", 0.3)
    tell = TELL.splitlines(keepends=True)
    text = tell[0] + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + tell[1] + "time.sleep(60)"
    process = starter.start(text, str(tmp_path / "pid"))
    pid = read_pid(tmp_path / "pid")
    start = time.monotonic()
    process.stop()
    assert 0.3 <= time.monotonic() - start < 5
    assert process.poll() == -signal.SIGKILL
    assert not is_alive(pid)


@pytest.mark.parametrize("ending", ["time.sleep(60)", "sys.exit(3)"], ids=["running", "gone before"])
def test_a_stop_ends_what_the_process_started_too(
    starter: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(local, "_SECONDS_TO_END", 0.3)
    child = "import os, pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    child += "pathlib.Path(sys.argv[1]).write_text(f'{os.getpid()}\\n'); time.sleep(60)"
    text = TELL + f"subprocess.Popen([sys.executable, '-c', {child!r}, sys.argv[2]])\n"
    text += f"while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.01)\n{ending}"
    process = starter.start(text, str(tmp_path / "pid"), str(tmp_path / "child"))
    pid, grandchild = read_pid(tmp_path / "pid"), read_pid(tmp_path / "child")
    if "exit" in ending:
        wait_until(lambda: process.poll() == 3, "the process has ended")
    assert is_alive(grandchild)
    process.stop()
    wait_until_dead([pid, grandchild], seconds=2)


def test_a_second_stop_does_nothing(starter: Starter) -> None:
    process = starter.start("import time; time.sleep(60)")
    process.stop()
    code = process.poll()
    process.stop()
    assert process.poll() == code


def test_a_free_port_can_be_listened_on(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind((ADDRESS, LocalHost(tmp_path).choose_free_port()))


def test_the_next_start_of_a_name_begins_a_new_log(starter: Starter, tmp_path: Path) -> None:
    (tmp_path / "worker_0.log").write_text("of the attempt before\n")
    assert starter.run("print('new')") == "new\n"
