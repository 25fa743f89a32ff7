"""One at a time on this machine; the lock goes with its holder, however that ends."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)
_SECONDS_BETWEEN_TRIES = 1.0


@contextmanager
def machine_lock(name: str) -> Iterator[None]:
    """Waits, for ever if need be, until no other process of this user holds the lock `name`."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"imagenet_ops_{os.getuid()}_{digest}.lock"
    with open(path, "ab") as file:
        told = False
        while not _try_lock(file.fileno()):
            if not told:
                log.info("waiting: another process works on %s", name)
                told = True
            time.sleep(_SECONDS_BETWEEN_TRIES)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
