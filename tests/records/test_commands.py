from __future__ import annotations

import pytest

from tests.records.conftest import Records
from tests.records.record_files import tiny_records, write_records

COMMANDS = ["ls", "cat", "show", "stats", "merge", "split", "reindex", "filter"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_its_exit_codes(records: Records, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        records(command, "--help")
    text = " ".join(capsys.readouterr().out.split())
    assert text.endswith(
        "exit codes: 0 all was read, 1 an error, 2 a wrong command line, 3 something was lost (only with --salvage)"
    )


def test_the_help_names_every_command(records: Records, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        records("--help")
    text = capsys.readouterr().out
    assert [command for command in COMMANDS if f"    {command} " not in text] == []


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "x", "", "٣", "9223372036854775808", "9" * 5000])
def test_a_number_out_of_its_limits_is_a_wrong_command_line(
    records: Records, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records("a.rec", tiny_records(2))
    with pytest.raises(SystemExit) as ended:
        records("ls", "a.rec", f"--limit={number}")
    assert ended.value.code == 2
    assert "expected a whole number from 1 to 9223372036854775807, found " in capsys.readouterr().err


def test_a_number_may_be_as_great_as_its_limit(records: Records) -> None:
    write_records("a.rec", tiny_records(2))
    assert len(records("ls", "a.rec", "--limit", 2**63 - 1).out.splitlines()) == 2
