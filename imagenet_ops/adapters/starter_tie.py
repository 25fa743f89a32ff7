"""Ties this process's life to its starter's."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_starter(starter_pid: int) -> None:
    """From now on Linux kills this process when its starter ends, also one that was killed; at once if it has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != starter_pid:
        os._exit(1)
