"""machine_lock: the second waits for the first, and a killed holder holds nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from imagenet_ops.adapters.machine_lock import machine_lock


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_the_second_waits_until_the_first_has_left() -> None:
    order: list[str] = []

    def second() -> None:
        with machine_lock("a"):
            order.append("second")

    with machine_lock("a"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_another_name_is_another_lock() -> None:
    with machine_lock("a"), machine_lock("b"):
        pass


def test_a_holder_that_is_killed_holds_nothing() -> None:
    script = (
        "from imagenet_ops.adapters.machine_lock import machine_lock\n"
        "import sys, time\n"
        "with machine_lock('a'):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.communicate()
    with machine_lock("a"):
        pass
