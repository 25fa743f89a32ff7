"""The command line, in this process where that is enough, and as a process of its own where signals are its matter."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from imagenet_ops.cli import main
from imagenet_ops.stages.pipeline import STAGE_NAMES
from tests.builders import class_tars, jpeg
from tests.process_life import wait_until, wait_until_dead
from tests.tiny_dataset import tiny_classes, write_archives

UP_TO_VERIFY = STAGE_NAMES[:-1]
REPOSITORY = Path(__file__).parents[1]
CATALOGUE_FILE = """\
title: A few small images
sources:
  - url: ../source/archive_0.tar
layout: class_tars
min_images_per_class: 4
validation_per_class: 2
seed: 7
short_edge_pixels: 12
num_chunks: 2
training:
  num_layers: 18
  image_pixels: 28
"""


@dataclass
class Outcome:
    exit_code: int
    out: str
    err: str

    def lines(self) -> list[str]:
        """Output lines with times and fingerprints as `T` and `F`."""
        text = re.sub(r" +\d+\.\d s", " T s", self.out)
        return re.sub(r"/[0-9a-f]{16}/", "/F/", text).splitlines()


@dataclass
class Installation:
    """A catalogue with the dataset `tiny`, its archive and an empty store, as the environment tells."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    def run(self, *arguments: str) -> Outcome:
        self.capture.readouterr()
        exit_code = main(list(arguments))
        captured = self.capture.readouterr()
        return Outcome(exit_code, captured.out, captured.err)

    def refused(self, *arguments: str) -> Outcome:
        """What is said of a wrong command line."""
        self.capture.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(list(arguments))
        captured = self.capture.readouterr()
        assert isinstance(caught.value.code, int)
        return Outcome(caught.value.code, captured.out, captured.err)

    def run_up_to_verify(self, *arguments: str) -> list[str]:
        lines = []
        for stage in UP_TO_VERIFY:
            outcome = self.run("run", stage, "--dataset", "tiny", "--jobs", "1", *arguments)
            assert outcome.exit_code == 0, outcome.err
            lines += outcome.lines()
        return lines

    def stored(self) -> dict[str, int]:
        root = self.folder / "store"
        return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / "catalogue" / name
        path.write_text(text, encoding="utf-8")
        return path

    @contextmanager
    def process(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The command as the leader of a group of its own, which is killed at the end."""
        process = subprocess.Popen(
            [sys.executable, "-m", "imagenet_ops.cli", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Installation:
    write_archives(tmp_path / "source", class_tars(tiny_classes()))
    (tmp_path / "catalogue").mkdir()
    monkeypatch.setenv("IMAGENET_OPS_STORE_URL", (tmp_path / "store").as_uri())
    monkeypatch.setenv("IMAGENET_OPS_CATALOGUE", str(tmp_path / "catalogue"))
    monkeypatch.setenv("IMAGENET_OPS_TRAINER_PYTHON", str(tmp_path / "no_trainer_python"))
    installation = Installation(tmp_path, capsys)
    installation.write("tiny.yaml", CATALOGUE_FILE)
    return installation


def line_of(stage: str, state: str) -> str:
    return f"{stage:<20} {state} T s  tiny/{stage}/F/manifest.json"


def test_the_stages_run_one_by_one_and_a_second_time_are_reused(installation: Installation) -> None:
    assert installation.run_up_to_verify() == [line_of(stage, "built") for stage in UP_TO_VERIFY]
    before = installation.stored()
    assert installation.run_up_to_verify() == [line_of(stage, "reused") for stage in UP_TO_VERIFY]
    assert installation.stored() == before


def test_all_runs_up_to_the_stage_that_is_asked_for(installation: Installation) -> None:
    stages = UP_TO_VERIFY[:-1]
    outcome = installation.run("run", "all", "--until", "pack_recordio", "--dataset", "tiny", "--dry-run")
    assert [line.split()[:2] for line in outcome.lines()] == [[stage, "build"] for stage in stages]
    outcome = installation.run("run", "all", "--until", "pack_recordio", "--dataset", "tiny")
    assert (outcome.exit_code, outcome.lines()) == (0, [line_of(stage, "built") for stage in stages])
    outcome = installation.run("run", "all", "--until", "verify", "--dataset", "tiny")
    assert outcome.exit_code == 0
    assert outcome.lines()[: len(UP_TO_VERIFY)] == [
        *(line_of(stage, "reused") for stage in stages), line_of("verify", "built")
    ]  # fmt: skip
    assert "classes    2 kept, 1 dropped for too few images" in outcome.lines()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("all", "--until", "packing"), "stage 'packing': expected one of download, untar,"),
        (("untar", "--until", "verify"), "--until goes with `run all` only"),
    ],
)
def test_an_until_that_can_not_be_meant_is_refused(
    installation: Installation, arguments: tuple[str, ...], told: str
) -> None:
    outcome = installation.run("run", *arguments, "--dataset", "tiny")
    assert outcome.exit_code == 1 and told in outcome.err
    assert installation.stored() == {}


def test_all_runs_to_the_first_error_and_goes_on_from_there_the_next_time(installation: Installation) -> None:
    """Here it is the training, for want of a trainer."""
    for state in ("built", "reused"):
        outcome = installation.run("run", "all", "--dataset", "tiny", "--jobs", "1")
        assert outcome.exit_code == 1
        assert outcome.lines() == [line_of(stage, state) for stage in UP_TO_VERIFY]
        assert outcome.err.startswith("imagenet-ops: ProcessFailed: scheduler_0 can't be started: ")
        assert outcome.err.count("\n") == 1


def test_a_dry_run_tells_what_is_there_and_writes_nothing(installation: Installation) -> None:
    outcome = installation.run("run", "all", "--dataset", "tiny", "--dry-run")
    assert (outcome.exit_code, outcome.lines()) == (
        0,
        ["download             build  tiny/download/F/manifest.json"]
        + [f"{stage:<20} build  (follows)" for stage in STAGE_NAMES[1:]],
    )
    assert not (installation.folder / "store").exists()
    installation.run("run", "download", "--dataset", "tiny")
    before = installation.stored()
    outcome = installation.run("run", "all", "--dataset", "tiny", "--dry-run")
    assert outcome.lines() == [
        "download             reuse  tiny/download/F/manifest.json",
        "untar                build  tiny/untar/F/manifest.json",
    ] + [f"{stage:<20} build  (follows)" for stage in STAGE_NAMES[2:]]
    assert installation.stored() == before


def test_the_summary_tells_classes_images_reasons_and_places(installation: Installation) -> None:
    installation.run_up_to_verify()
    outcome = installation.run("summary", "--dataset", "tiny")
    assert outcome.exit_code == 0
    store = (installation.folder / "store").as_uri()
    lines = outcome.lines()
    (chunks,) = [line for line in lines if line.startswith("chunks     3")]
    assert re.fullmatch(r"chunks     3, [\d,]+ bytes; an image has \d+ bytes on average", chunks)
    (stored,) = [line for line in lines if line.startswith("stored")]
    assert re.fullmatch(r"stored     12 shrunk: [\d,]+ bytes became [\d,]+", stored)
    assert [line for line in lines if line not in (chunks, stored)] == [
        "classes    2 kept, 1 dropped for too few images",
        "             n01          4 train       2 val  n01",
        "             n02          4 train       2 val  n02",
        "             n03          2 images, dropped   n03",
        "images     8 train, 4 validation",
        "rejected   2 (not an image)",
        "                     1 empty",
        "                     1 text",
        "skipped    0 (can't be decoded)",
        f"chunks     {store}/tiny/pack_recordio/F/data/",
        f"report     {store}/tiny/verify/F/manifest.json",
    ]


def test_a_summary_of_what_is_not_built_says_so(installation: Installation) -> None:
    installation.run("run", "download", "--dataset", "tiny")
    outcome = installation.run("summary", "--dataset", "tiny")
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err == (
        "imagenet-ops: ConfigError: dataset tiny: not built with these settings yet; `run all` builds it\n"
    )


def test_an_override_takes_the_place_of_the_files_value(installation: Installation) -> None:
    installation.run_up_to_verify()
    before = installation.stored()
    lines = installation.run_up_to_verify("--set", "jpeg_quality=40", "--set", "training.num_epochs=3")
    states = ["built" if stage in ("pack_recordio", "verify") else "reused" for stage in UP_TO_VERIFY]
    assert lines == [line_of(stage, state) for stage, state in zip(UP_TO_VERIFY, states, strict=True)]
    after = installation.stored()
    assert {key: after[key] for key in before} == before  # what the file's own settings gave is still there


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("jpeg_quality", "--set 'jpeg_quality': expected KEY=VALUE"),
        ("=3", "--set '=3': expected KEY=VALUE"),
        ("jpeg_quality=101", "jpeg_quality: input should be less than or equal to 100, given 101"),
        ("jpeg_quality=high", "jpeg_quality: input should be a valid integer, given 'high'"),
        ("jpeg_qualty=50", "jpeg_qualty: unknown key; did you mean jpeg_quality?"),
        ("training.num_epoch=3", "training.num_epoch: unknown key; did you mean num_epochs?"),
        ("training.num_layers=17", "num_layers of resnet is one of"),
        ("title=[unclosed", "--set 'title=[unclosed': the value is not valid YAML"),
        ("title.short=x", "title.short: can't be laid over title, which is 'A few small images' and has no keys"),
        ("sources.0.url=x", "sources.0.url: can't be laid over sources, which is"),
        ("training.num_layers.x=3", "training.num_layers.x: can't be laid over num_layers, which is 18"),
        ("name=other", "name: the file's own name is the dataset's; leave the key out"),
    ],
)
def test_an_override_that_makes_no_sense_is_refused(installation: Installation, override: str, told: str) -> None:
    outcome = installation.run("run", "download", "--dataset", "tiny", "--set", override)
    assert outcome.exit_code == 1
    assert outcome.err.startswith("imagenet-ops: ConfigError: ")
    assert told in outcome.err
    assert not (installation.folder / "store").exists()


def test_an_unknown_dataset_is_told_with_the_known_ones(installation: Installation) -> None:
    installation.write("other.yaml", CATALOGUE_FILE)
    outcome = installation.run("run", "download", "--dataset", "tiniest")
    assert (outcome.exit_code, outcome.err) == (
        1,
        f"imagenet-ops: ConfigError: dataset 'tiniest' is not in {installation.folder / 'catalogue'}; "
        "known: other, tiny\n",
    )


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_an_unknown_stage_is_told_with_the_known_ones(installation: Installation, more: tuple[str, ...]) -> None:
    outcome = installation.run("run", "untarr", "--dataset", "tiny", *more)
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "ConfigError: stage 'untarr': expected one of" in outcome.err
    assert all(stage in outcome.err for stage in STAGE_NAMES)


def test_a_stage_out_of_order_is_told_with_the_one_to_run_first(installation: Installation) -> None:
    installation.run("run", "download", "--dataset", "tiny")
    outcome = installation.run("run", "pack_recordio", "--dataset", "tiny")
    assert (outcome.exit_code, outcome.out, outcome.err) == (
        1,
        "",
        "imagenet-ops: ConfigError: stage pack_recordio: untar has not run with these settings yet; run it first\n",
    )


def test_a_fault_of_the_data_is_one_message_and_no_traceback(installation: Installation) -> None:
    (installation.folder / "source" / "archive_0.tar").write_bytes(b"no tar at all" * 100)
    installation.run("run", "download", "--dataset", "tiny")
    outcome = installation.run("run", "untar", "--dataset", "tiny")
    assert (outcome.exit_code, outcome.err) == (
        1,
        "imagenet-ops: DataError: archive data/000_archive_0.tar: expected an uncompressed tar, found something else "
        "in its first 512 bytes\n",
    )


def test_a_source_that_is_not_there_is_told(installation: Installation) -> None:
    archive = installation.folder / "source" / "archive_0.tar"
    archive.unlink()
    outcome = installation.run("run", "all", "--dataset", "tiny")
    assert (outcome.exit_code, outcome.err) == (
        1,
        f"imagenet-ops: ConfigError: source {archive.as_uri()}: no such file or folder\n",
    )


def test_a_store_of_another_kind_is_refused(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGENET_OPS_STORE_URL", "ftp://host/store")
    outcome = installation.run("run", "all", "--dataset", "tiny")
    assert (outcome.exit_code, outcome.err) == (
        1,
        "imagenet-ops: ConfigError: store 'ftp://host/store': expected file:///an/absolute/folder\n",
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("run", "all"), "the following arguments are required: --dataset"),
        (("run", "all", "--dataset", "tiny", "--jobs", "0"), "expected a whole number of at least 1, found '0'"),
        (("run", "all", "--dataset", "tiny", "--jobs", "many"), "expected a whole number of at least 1, found 'many'"),
        (("fly",), "invalid choice: 'fly'"),
        (("run", "all", "--dataset", "tiny", "--fast"), "unrecognized arguments: --fast"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_line_is_exit_code_2(installation: Installation, arguments: tuple[str, ...], told: str) -> None:
    outcome = installation.refused(*arguments)
    assert outcome.exit_code == 2
    assert told in outcome.err


@pytest.mark.parametrize("command", [(), ("run",), ("summary",), ("check",)], ids=" ".join)
def test_help_is_there_for_every_command(installation: Installation, command: tuple[str, ...]) -> None:
    outcome = installation.refused(*command, "--help")
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"usage: {' '.join(['imagenet-ops', *command])} ")
    if command == ("run",):
        text = " ".join(outcome.out.split())
        assert f"all, or one of {', '.join(STAGE_NAMES)}" in text  # the list in the help is that of the pipeline


def test_a_check_without_files_checks_the_whole_catalogue(installation: Installation) -> None:
    installation.write("also_good.yaml", CATALOGUE_FILE.replace("A few", "Some other"))
    outcome = installation.run("check")
    folder = installation.folder / "catalogue"
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert outcome.out == (
        f"{folder}/also_good.yaml: good: Some other small images\n{folder}/tiny.yaml: good: A few small images\n"
    )


def test_a_check_tells_every_fault_of_every_file_and_still_goes_on_to_the_good_ones(
    installation: Installation,
) -> None:
    write = installation.write
    files = [
        write("empty.yaml", ""),
        write("Large.yaml", CATALOGUE_FILE),
        write("broken.yaml", "title: [unclosed\n"),
        write(
            "faulty.yaml",
            "title: ''\nsources: []\nlayout: zip\njpeg_quality: 0\nseeed: 1\n"
            "training: {num_layers: 18, schedule: {kind: wavy}}\n",
        ),
        write("rules.yaml", CATALOGUE_FILE.replace("validation_per_class: 2", "validation_per_class: 4")),
        installation.folder / "catalogue" / "missing.yaml",
        installation.folder / "catalogue" / "tiny.yaml",
    ]
    outcome = installation.run("check", *map(str, files))
    folder = f"{installation.folder}/catalogue"
    assert (outcome.exit_code, outcome.out) == (1, f"{folder}/tiny.yaml: good: A few small images\n")
    assert outcome.err == (
        f"{folder}/empty.yaml: a mapping of settings is expected, found NoneType\n"
        f"{folder}/Large.yaml: name: string should match pattern '^[a-z][a-z0-9_]{{0,62}}$', given 'Large'\n"
        f'{folder}/broken.yaml: is not valid YAML: while parsing a flow sequence in "<unicode string>", line 1, '
        "column 8: title: [unclosed ^ expected ',' or ']', but got '<stream end>' in \"<unicode string>\", line 2, "
        "column 1: ^\n"
        f"{folder}/faulty.yaml: title: string should have at least 1 character, given ''\n"
        f"{folder}/faulty.yaml: sources: list should have at least 1 item after validation, not 0, given []\n"
        f"{folder}/faulty.yaml: layout: input should be 'class_tars' or 'class_folders', given 'zip'\n"
        f"{folder}/faulty.yaml: jpeg_quality: input should be greater than or equal to 1, given 0\n"
        f"{folder}/faulty.yaml: training.schedule.kind: input should be 'constant', 'step' or 'cosine', given 'wavy'\n"
        f"{folder}/faulty.yaml: seeed: unknown key; did you mean seed?\n"
        f"{folder}/rules.yaml: settings: validation_per_class (4) must be smaller than min_images_per_class (4), or a "
        "class could be left without training images\n"
        f"{folder}/missing.yaml: can't be read: No such file or directory\n"
    )


def test_a_check_without_a_catalogue_is_told(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGENET_OPS_CATALOGUE", "/nowhere/at/all")
    outcome = installation.run("check")
    assert (outcome.exit_code, outcome.err) == (
        1,
        "imagenet-ops: ConfigError: /nowhere/at/all: no such catalogue folder\n",
    )


def test_ctrl_c_ends_with_130_and_a_word_instead_of_a_traceback(installation: Installation) -> None:
    """The source is a pipe that nothing is written to, so the download waits until it is stopped."""
    pipe = installation.folder / "source" / "endless.tar"
    os.mkfifo(pipe)
    installation.write("tiny.yaml", CATALOGUE_FILE.replace("archive_0.tar", pipe.name))
    with installation.process("run", "all", "--dataset", "tiny") as process:
        writer: list[int] = []

        def reader_is_there() -> bool:
            try:
                writer.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                assert process.poll() is None
                return False
            return True

        wait_until(reader_is_there, "the download reads")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
        os.close(writer[0])
    assert (process.returncode, out) == (130, "")
    assert err.endswith("imagenet-ops: stopped; what is done stays done, the same command goes on\n")
    assert "Traceback" not in err
    assert installation.stored() == {}


def packing_workers(process: subprocess.Popen[str]) -> list[int]:
    """Seen in the kernel's list of children."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children if b"packer.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


@contextmanager
def packing(installation: Installation) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The packing on three workers, each in the middle of an image that takes long."""
    image = jpeg(1000, 1000)
    archive = class_tars({"n01": {f"{number}.JPEG": image for number in range(61)}})
    write_archives(installation.folder / "source", archive)
    overrides = ("--set", "validation_per_class=1", "--set", "min_images_per_class=2")
    for stage in STAGE_NAMES[:4]:
        assert installation.run("run", stage, "--dataset", "tiny", *overrides).exit_code == 0
    slow = ("--set", "enlarge=true", "--set", "short_edge_pixels=6000")
    command = ("run", "pack_recordio", "--dataset", "tiny", "--jobs", "3", *overrides, *slow)
    with installation.process(*command) as process:
        folder = installation.folder / "store" / "tiny" / "pack_recordio"

        def three_pack() -> bool:
            assert process.poll() is None, process.communicate()[1]
            return len(packing_workers(process)) == 3 and bool(list(folder.glob("*/data/.train_*.rec.*.partial")))

        wait_until(three_pack, "three workers pack", seconds=60)
        children = packing_workers(process)
        yield process, children
    wait_until_dead(children)


def test_ctrl_c_while_several_processes_pack_ends_them_all_without_a_traceback(installation: Installation) -> None:
    with packing(installation) as (process, _):
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert err.endswith("imagenet-ops: stopped; what is done stays done, the same command goes on\n")


def test_when_the_command_is_killed_its_packing_workers_end_too(installation: Installation) -> None:
    with packing(installation) as (process, children):
        process.kill()
        process.wait()
        wait_until_dead(children)
