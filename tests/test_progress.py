"""Progress as a person sees it, in a log and on a terminal."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from imagenet_ops import progress
from imagenet_ops.progress import LogProgress, Progress, TerminalProgress
from tests.builders import class_tars
from tests.fakes import MemoryStore
from tests.tiny_dataset import Pipeline, settings, tiny_classes, write_archives


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", logger="imagenet_ops.progress")
    return caplog


def terminal() -> tuple[TerminalProgress, io.StringIO]:
    text = io.StringIO()
    return TerminalProgress(Console(file=text, force_terminal=True, width=120, color_system=None)), text


def test_the_log_has_one_line_at_the_end_with_count_total_and_rate(lines: pytest.LogCaptureFixture) -> None:
    with LogProgress().task("pack train_00000", 12_345, "records") as task:
        task.advance(1_000)
        task.advance(234)
    (message,) = lines.messages
    assert re.fullmatch(r"pack train_00000: 1,234 of 12,345 records done, [\d.e+]+/s", message)


def test_an_unknown_total_is_left_out(lines: pytest.LogCaptureFixture) -> None:
    with LogProgress().task("download", None, "bytes") as task:
        task.advance(5)
    assert lines.messages[0].startswith("download: 5 bytes done, ")


def test_between_the_log_has_a_line_only_when_some_time_has_passed(
    lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LogProgress().task("verify", 100, "records") as task:
        for _ in range(50):
            task.advance(1)
        assert lines.messages == []
        monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
        task.advance(1)
        assert [message.partition(",")[0] for message in lines.messages] == ["verify: 51 of 100 records so far"]


@pytest.mark.parametrize("kind", ["log", "terminal"])
def test_work_that_fails_is_not_told_as_done_and_its_error_comes_through(
    lines: pytest.LogCaptureFixture, kind: str
) -> None:
    shown: Progress = LogProgress() if kind == "log" else terminal()[0]
    with pytest.raises(ZeroDivisionError), shown.task("pack", 3, "records"):
        raise ZeroDivisionError
    assert lines.messages == []


def test_the_bar_shows_title_count_total_and_unit() -> None:
    shown, text = terminal()
    with shown.task("pack train_00000", 12, "records") as task:
        task.advance(5)
        task.advance(7)
    assert re.search(r"pack train_00000 .* 12/12 records", text.getvalue())


def test_the_bar_of_an_unknown_total_counts_all_the_same() -> None:
    shown, text = terminal()
    with shown.task("untar: archives", None, "members") as task:
        task.advance(7)
    assert re.search(r"7/\? members", text.getvalue())


def test_the_whole_pipeline_shows_its_bars_one_after_the_other(tmp_path: Path) -> None:
    pipeline = Pipeline(MemoryStore(), settings(write_archives(tmp_path, class_tars(tiny_classes()))))
    shown, text = terminal()
    pipeline.context = dataclasses.replace(pipeline.context, progress=shown)
    pipeline.run("verify")
    for counted in ("3/3 entries", "2/2 classes", "4/4 records", "12/12 records"):
        assert counted in text.getvalue()
