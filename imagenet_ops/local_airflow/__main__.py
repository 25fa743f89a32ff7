"""`python -m imagenet_ops.local_airflow up|down|status`: the local Airflow from a terminal."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from imagenet_ops.errors import ImagenetOpsError
from imagenet_ops.local_airflow.airflow import LocalAirflow
from imagenet_ops.local_airflow.home_lock import is_locked, stop_home
from imagenet_ops.local_airflow.process_table import is_alive
from imagenet_ops.local_airflow.processes import read_record
from imagenet_ops.local_airflow.settings import HomeLayout, LocalAirflowSettings

# Closing the terminal sends SIGHUP.
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    arguments = _build_parser().parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        return _COMMANDS[arguments.command](_build_settings(arguments))
    except ImagenetOpsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def run_up(settings: LocalAirflowSettings) -> int:
    """Stays in the foreground until a signal; 1 when a component has died."""
    airflow = LocalAirflow(settings)
    for number in _STOP_SIGNALS:
        signal.signal(number, _raise_interrupt)
    try:
        started = time.monotonic()
        airflow.start(_say)
        _say(f"ready after {time.monotonic() - started:.0f} s")
        _say(f"  address   {airflow.url}\n  user      {airflow.username}\n  password  {airflow.password}")
        _say("Ctrl-C stops it")
        while True:
            airflow.check()
            time.sleep(1)
    except KeyboardInterrupt:
        _say("stopping")
        return 0
    finally:
        airflow.stop()


def run_down(settings: LocalAirflowSettings) -> int:
    stop_home(HomeLayout(settings.home), _say)
    _say("stopped")
    return 0


def run_status(settings: LocalAirflowSettings) -> int:
    """Prints what runs; 0 when an Airflow serves the home, 3 when not."""
    layout = HomeLayout(settings.home)
    record = read_record(layout) if layout.home.exists() else None
    if record is None:
        _say(f"nothing runs in {layout.home}")
        return 3
    serving = is_locked(layout)
    _say(f"{record.url} (process {record.owner.pid})" if serving else "left behind by a killed process; run `down`")
    for name, identity in record.components.items():
        _say(f"  {name:<14} {identity.pid:>8}  {'running' if is_alive(identity) else 'ended'}")
    return 0 if serving else 3


_COMMANDS = {"up": run_up, "down": run_down, "status": run_status}


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    # Once: a second Ctrl-C would break off the stopping and leave processes behind.
    for each in _STOP_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m imagenet_ops.local_airflow",
        description="An Airflow with its own PostgreSQL on this machine, reached from this machine only.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "command",
        choices=_COMMANDS,
        help="up: start, show address and password, stay until Ctrl-C; down: stop what an `up` started, even one that "
        "was killed; status: what runs",
    )
    parser.add_argument("--home", type=Path, default=Path(".local/airflow"), help="its database, logs and secrets")
    parser.add_argument("--port", type=int, default=8080, help="the next free one is used when it is taken; 0: any")
    parser.add_argument("--dags", type=Path, default=Path("dags"), help="folder of the DAG files")
    parser.add_argument("--plugins", type=Path, default=Path("plugins"), help="folder of the plugins, if there is one")
    parser.add_argument("--store", default=Path(".local/store").absolute().as_uri(), help="URL of the object store")
    parser.add_argument("--trainer-python", type=Path, default=Path(".venv-trainer/bin/python"), help="has mxnet")
    parser.add_argument("--parallelism", type=int, default=2, help="tasks that run at once")
    return parser


def _build_settings(arguments: argparse.Namespace) -> LocalAirflowSettings:
    plugins: Path = arguments.plugins.absolute()
    return LocalAirflowSettings(
        home=arguments.home.absolute(),
        dags_folder=arguments.dags.absolute(),
        plugins_folder=plugins if plugins.exists() else None,
        store_url=arguments.store,
        trainer_python=arguments.trainer_python.absolute(),  # not resolved: a venv's python is a link out of it
        port=arguments.port,
        parallelism=arguments.parallelism,
    )


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
