from __future__ import annotations

import base64
from pathlib import Path

from imagenet_ops.local_airflow.credentials import load_or_create_credentials, write_private_file


def test_secrets_are_made_once_and_used_again(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"

    assert vars(load_or_create_credentials(path)) == vars(load_or_create_credentials(path))


def test_two_homes_have_different_secrets(tmp_path: Path) -> None:
    first = vars(load_or_create_credentials(tmp_path / "first.json"))
    second = vars(load_or_create_credentials(tmp_path / "second.json"))

    assert not set(first.values()) & set(second.values())


def test_only_the_owner_reads_the_secrets(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    load_or_create_credentials(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_that_was_open_to_all_is_closed_when_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "passwords.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private_file(path, "new")

    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_keys_are_long_enough_for_airflow(tmp_path: Path) -> None:
    credentials = load_or_create_credentials(tmp_path / "secrets.json")

    assert len(credentials.jwt_secret) >= 64
    assert len(base64.urlsafe_b64decode(credentials.fernet_key)) == 32


def test_no_secret_shows_in_the_text_of_the_value(tmp_path: Path) -> None:
    credentials = load_or_create_credentials(tmp_path / "secrets.json")

    assert not any(secret in repr(credentials) for secret in vars(credentials).values())
