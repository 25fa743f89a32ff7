"""A free port on this machine."""

from __future__ import annotations

import errno
import socket

from imagenet_ops.local_airflow.environment import HOST

_PORTS_TO_TRY = 50


def choose_port(wished: int) -> int:
    """The wished port, or the next free one after it; any free one when 0 is wished.

    Another process may still take it before the API server does; the server then ends, and its log says why.
    """
    last = min(wished + _PORTS_TO_TRY, 65536)
    for port in range(wished, last) if wished else ():
        if _is_free(port):
            return port
    with socket.socket() as any_free:
        any_free.bind((HOST, 0))
        return int(any_free.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the server does, or a port that has just been given up would look taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True
