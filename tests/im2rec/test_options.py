"""The command line: im2rec.py's own, told apart from that of old versions."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from imagenet_ops.im2rec.command import add_im2rec_parser
from imagenet_ops.im2rec.contradictions import find_contradictions
from imagenet_ops.im2rec.options import Im2recOptions, parse_options

# im2rec.py's options, with a value each that is not the default.
ORIGINAL = {
    "--list": "",
    "--exts": ".png",
    "--chunks": "3",
    "--train-ratio": "0.5",
    "--test-ratio": "0.25",
    "--recursive": "",
    "--no-shuffle": "",
    "--pass-through": "",
    "--resize": "7",
    "--center-crop": "",
    "--quality": "7",
    "--num-thread": "7",
    "--color": "-1",
    "--encoding": ".png",
    "--pack-label": "",
}
DEFAULTS = Im2recOptions(
    prefix=Path("/data/p"),
    root=Path("/data/root"),
    makes_lists=False,
    exts=(".jpeg", ".jpg", ".png"),
    chunks=1,
    train_ratio=1.0,
    test_ratio=0.0,
    recursive=False,
    shuffle=True,
    pass_through=False,
    resize=0,
    center_crop=False,
    quality=95,
    num_thread=1,
    color=1,
    encoding=".jpg",
    pack_label=False,
    quarantine=Path("/data/p_quarantine"),
    max_skipped_fraction=0.001,
    dry_run=False,
)


def parse(text: str) -> Im2recOptions:
    return parse_options([*text.split(), "/data/p", "/data/root"])


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        parse_options(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1].removeprefix("imagenet-ops im2rec: error: ")


def test_the_defaults_are_those_of_the_original() -> None:
    assert parse("") == DEFAULTS


def test_options_may_stand_anywhere() -> None:
    arguments = "--list /data/p --color -1 /data/root --exts .jpg .png --resize=5"
    options = parse_options(arguments.split())
    assert (options.prefix, options.root, options.exts) == (Path("/data/p"), Path("/data/root"), (".jpg", ".png"))
    assert (options.makes_lists, options.color, options.resize) == (True, -1, 5)


def test_paths_are_made_absolute_and_links_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("/")
    options = parse_options(["a/../link/p", "root/"])
    assert (options.prefix, options.root) == (tmp_path / "link/p", tmp_path / "root")


@pytest.mark.parametrize("option", ORIGINAL)
def test_every_short_form_that_the_original_takes_means_the_same(option: str) -> None:
    expected = parse(f"{option} {ORIGINAL[option]} --")
    assert expected != DEFAULTS
    for length in range(3, len(option)):
        short = option[:length]
        if sum(other.startswith(short) for other in ORIGINAL) == 1:
            assert parse(f"{short} {ORIGINAL[option]} --") == expected, short


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ("--list True", "`--list True`: since MXNet 1.1 `--list` takes no value; write `--list`"),
        ("--recursive True", "`--recursive True`: since MXNet 1.1 `--recursive` takes no value; write `--recursive`"),
        ("--recursive=1", "`--recursive=1`: since MXNet 1.1 `--recursive` takes no value; write `--recursive`"),
        ("--center-crop 0", "`--center-crop 0`: since MXNet 1.1 `--center-crop` takes no value; leave it out"),
        ("--shuffle False", "`--shuffle False`: since MXNet 1.1 lists are shuffled without it; write `--no-shuffle`"),
        ("--shuffle True", "`--shuffle True`: since MXNet 1.1 lists are shuffled without it; leave it out"),
        ("--train_ratio 0.5", "`--train_ratio`: write `--train-ratio`"),
        ("--color-mode 1", "`--color-mode`: write `--color`"),
    ],
)
def test_an_old_spelling_is_refused_with_the_one_of_today(
    arguments: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal([*arguments.split(), "p", "root"], capsys) == advice
    assert refusal(["p", "root", *arguments.split()], capsys) == advice


def test_a_prefix_may_be_called_true() -> None:
    assert parse_options(["--list", "True", "/root"]).prefix.name == "True"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("--chunks 0", "argument --chunks: expected a whole number from 1 to 2147483647, found '0'"),
        ("--chunks -2", "argument --chunks: expected a whole number from 1 to 2147483647, found '-2'"),
        ("--resize -1", "argument --resize: expected a whole number from 0 to 2147483647, found '-1'"),
        ("--resize 0.5", "argument --resize: expected a whole number from 0 to 2147483647, found '0.5'"),
        ("--quality 2147483648", "expected a whole number from -2147483648 to 2147483647"),
        ("--train-ratio -0.1", "argument --train-ratio: expected a number from 0"),
        ("--train-ratio nan", "argument --train-ratio: expected a number from 0"),
        ("--test-ratio inf", "argument --test-ratio: expected a number from 0"),
        ("--exts .JPG --", "argument --exts: '.JPG' matches no file, for names are compared in lower case; add '.jpg'"),
        ("--exts jpg --", "argument --exts: expected the end of a name with its dot, such as '.jpg', found 'jpg'"),
        ("--color 2", "argument --color: invalid choice: 2 (choose from -1, 0, 1)"),
        ("--max-skipped-fraction 2", "argument --max-skipped-fraction: expected a number from 0 to 1, found '2'"),
        ("--colour 1", "unrecognized arguments: --colour"),
    ],
)
def test_a_value_that_would_lose_images_is_refused(
    arguments: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fault in refusal([*arguments.split(), "p", "root"], capsys)


@pytest.mark.parametrize(
    ("arguments", "beginnings"),
    [
        ("", []),
        ("--list --train-ratio 0.7 --test-ratio 0.3", []),
        ("--list --train-ratio 0.8 --test-ratio 0.4", ["--train-ratio 0.8, --test-ratio 0.4"]),
        ("--list --train-ratio 80", ["--train-ratio 80, --test-ratio 0"]),
        ("--list --test-ratio 0.2", ["--test-ratio 0.2"]),
        ("--quality 0", ["--quality 0"]),
        ("--quality 101", ["--quality 101"]),
        ("--encoding .png", ["--quality 95"]),
        ("--encoding .png --quality 9", []),
        ("--pass-through", []),
        ("--pass-through --resize 5 --color 0", ["--resize", "--color"]),
        ("--num-thread 0", ["--num-thread 0"]),
    ],
)
def test_what_cant_be_meant_is_told(arguments: str, beginnings: list[str]) -> None:
    assert [text.partition(":")[0] for text in find_contradictions(parse(arguments))] == beginnings


def test_a_prefix_that_is_a_folder_is_told_before_lists_are_made(tmp_path: Path) -> None:
    (told,) = find_contradictions(parse_options(["--list", str(tmp_path), str(tmp_path)]))
    assert told.startswith(f"PREFIX {tmp_path}: is a folder")


@pytest.mark.parametrize(
    "arguments",
    [["--list", "p", "root"], ["p", "root", "--exts", ".jpg"], ["--", "p", "root"], ["--color", "-1", "p", "r"]],
)
def test_arguments_reach_the_parser_as_they_were_written(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lists-of-somebody-else")
    add_im2rec_parser(parser.add_subparsers())
    assert parser.parse_args(["im2rec", *arguments]).arguments == arguments


def test_help_comes_from_the_parser_inside(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_im2rec_parser(parser.add_subparsers())
    options = parser.parse_args(["im2rec", "--help"])
    with pytest.raises(SystemExit) as ended:
        options.run(options)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: imagenet-ops im2rec [-h] [--list]")
