"""The secrets of one home: made once, kept in a file that only its owner reads, never on a command line."""

from __future__ import annotations

import base64
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

USERNAME = "admin"


@dataclass(frozen=True)
class Credentials:
    """`jwt_secret` signs the tokens of tasks and users, `api_secret_key` the sessions; all components share them."""

    jwt_secret: str
    api_secret_key: str
    fernet_key: str
    password: str

    def __repr__(self) -> str:
        return "Credentials(…)"  # a traceback or a log line shows no secret


def load_or_create_credentials(path: Path) -> Credentials:
    """The same values at every call. A Fernet key that changed would make stored connections unreadable."""
    if path.exists():
        return Credentials(**json.loads(path.read_text()))
    credentials = _generate()
    write_private_file(path, json.dumps(asdict(credentials), indent=2) + "\n")
    return credentials


def write_private_file(path: Path, text: str) -> None:
    """Mode 0600 from the first byte on; a reader sees the old text or the new one, never a part."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    partial.replace(path)


def _generate() -> Credentials:
    return Credentials(
        jwt_secret=secrets.token_urlsafe(64),  # HS512 wants 64 bytes or more
        api_secret_key=secrets.token_urlsafe(64),
        fernet_key=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        password=secrets.token_urlsafe(12),
    )
