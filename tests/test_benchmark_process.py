"""What a measured command is said to have taken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.packing.measured_process import CommandFailed, measure

_MEGABYTES = 200
_HOLDS_MEMORY = f"import time; held = bytearray(b'x' * {_MEGABYTES * 10**6}); time.sleep(0.8)"
_WORKS = "import time\nwhile time.process_time() < 0.5: pass"


def _in_a_child(code: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)",
    ]


def test_memory_of_a_child_counts(tmp_path: Path) -> None:
    assert measure(_in_a_child(_HOLDS_MEMORY), tmp_path).peak_bytes > _MEGABYTES * 10**6


def test_processor_time_of_a_child_counts(tmp_path: Path) -> None:
    usage = measure(_in_a_child(_WORKS), tmp_path)
    assert 0.5 <= usage.cpu_seconds < 5
    assert usage.seconds >= 0.5


def test_processor_time_of_a_process_that_is_left_behind_counts(tmp_path: Path) -> None:
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_WORKS!r}])"
    usage = measure([sys.executable, "-c", code], tmp_path)
    assert usage.cpu_seconds >= 0.5
    assert usage.seconds < 0.5


def test_output_and_environment_are_the_commands(tmp_path: Path) -> None:
    code = "import os; print(os.environ['GREETING'], os.getcwd())"
    usage = measure([sys.executable, "-c", code], tmp_path, {"GREETING": "hello"})
    assert usage.output == f"hello {tmp_path}\n"


def test_a_command_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"exit code 3\n.*no such luck"):
        measure([sys.executable, "-c", "print('no such luck'); raise SystemExit(3)"], tmp_path)
