"""imagenet-ops: the pipeline's stages without Airflow."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from imagenet_ops import commit
from imagenet_ops.adapters.object_store import open_store
from imagenet_ops.catalogue import find_dataset, list_datasets, load_dataset
from imagenet_ops.deployment import read_deployment
from imagenet_ops.errors import ConfigError, ImagenetOpsError
from imagenet_ops.im2rec.command import add_im2rec_parser
from imagenet_ops.progress import choose_progress
from imagenet_ops.records.commands import add_records_parser

_STAGES = "download, untar, filter_rare_classes, sample_validation, pack_recordio, verify, train"


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 0, 1 for an error that was told, 2 for a wrong command line, 130 for Ctrl-C."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        exit_code: int = options.run(options)
        return exit_code
    except ImagenetOpsError as error:
        print(f"imagenet-ops: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"imagenet-ops: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("imagenet-ops: stopped; what is done stays done, the same command goes on", file=sys.stderr)
        return 130


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="imagenet-ops", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser(
        "run", help="run a stage, or all", description="Runs a stage over what lies in the store."
    )
    run.add_argument("stage", metavar="STAGE", help=f"all, or one of {_STAGES}")
    _add_dataset_options(run)
    run.add_argument(
        "--jobs", type=_positive, default=os.cpu_count() or 1, help="processes that pack (default: all cores)"
    )
    run.add_argument("--until", metavar="STAGE", help="with `all`: the last stage to run (default: train)")
    run.add_argument("--dry-run", action="store_true", help="say what would be reused and what would be built")
    run.set_defaults(run=_run)

    add_records_parser(commands)
    add_im2rec_parser(commands)

    summary = commands.add_parser("summary", help="what was built", description="Shows a built dataset and its model.")
    _add_dataset_options(summary)
    summary.set_defaults(run=_summary)

    check = commands.add_parser("check", help="check catalogue files", description="Checks catalogue files.")
    check.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: every file of the catalogue")
    check.set_defaults(run=_check)
    return parser


def _add_dataset_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, metavar="NAME", help="name of a catalogue file without .yaml")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value for a setting, such as training.num_epochs=3; may be given again",
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def _build_context(options: argparse.Namespace) -> Any:
    from imagenet_ops.stages.stage import StageContext

    deployment = read_deployment()
    overrides = dict(_parse_override(text) for text in options.set)
    return StageContext(
        store=open_store(deployment.store_url),
        dataset=load_dataset(find_dataset(deployment.catalogue, options.dataset), overrides),
        progress=choose_progress(),
        trainer_python=deployment.trainer_python,
    )


def _parse_override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise ConfigError(f"--set {text!r}: expected KEY=VALUE")
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"--set {text!r}: the value is not valid YAML") from None


def _run(options: argparse.Namespace) -> int:
    from imagenet_ops.local_run import look_ahead, run_pipeline, run_single
    from imagenet_ops.stages.pipeline import find_stage

    if options.stage != "all":
        find_stage(options.stage)
        if options.until:
            raise ConfigError("--until goes with `run all` only")
    last_stage = find_stage(options.until or "train").name
    context = _build_context(options)
    if options.dry_run:
        for outcome in look_ahead(context):
            if options.stage in ("all", outcome.stage):
                state = "reuse" if outcome.done else "build"
                print(f"{outcome.stage:<20} {state:<6} {outcome.manifest_key or '(follows)'}")
            if outcome.stage == last_stage:
                break
        return 0
    if options.stage == "all":
        outcomes = run_pipeline(context, last_stage, options.jobs)
    else:
        outcomes = iter([run_single(context, options.stage, options.jobs)])
    for outcome in outcomes:
        state = "reused" if outcome.done else "built"
        print(f"{outcome.stage:<20} {state:<7} {outcome.seconds:>8.1f} s  {outcome.manifest_key}", flush=True)
    if options.stage == "all" and last_stage in ("verify", "train"):
        print()
        return _summary(options)
    return 0


def _summary(options: argparse.Namespace) -> int:
    from imagenet_ops.local_run import look_ahead
    from imagenet_ops.manifests import DatasetReport, TrainedModel
    from imagenet_ops.summary import summarise_dataset, summarise_places, summarise_training

    context = _build_context(options)
    keys = {outcome.stage: outcome.manifest_key for outcome in look_ahead(context) if outcome.done}
    report_key, model_key = keys.get("verify"), keys.get("train")
    if report_key is None:
        raise ConfigError(f"dataset {options.dataset}: not built with these settings yet; `run all` builds it")
    report = commit.read(context.store, report_key, DatasetReport)
    lines = summarise_dataset(report)
    if model_key is not None:
        lines += summarise_training(report, commit.read(context.store, model_key, TrainedModel))
    lines += summarise_places(context.store, report_key, report, model_key)
    print("\n".join(lines))
    return 0


def _check(options: argparse.Namespace) -> int:
    files = options.files or list(list_datasets(read_deployment().catalogue).values())
    faults = 0
    for path in files:
        try:
            settings = load_dataset(path)
            print(f"{path}: good: {settings.title}")
        except ConfigError as error:
            faults += 1
            print(error, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
