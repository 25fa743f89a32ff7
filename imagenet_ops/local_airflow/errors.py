"""What can go wrong with the local Airflow; every text says what to do about it.

LocalAirflowError
├── AlreadyRunning      another process serves the same home: use it, or stop it
├── ComponentDied       the text holds the end of its log
├── StartTimedOut       not healthy in time: the text says which part
├── RestError           the API refused; `status` is its HTTP status
└── DagImportFailed     the text holds the traceback of the DAG file
"""

from __future__ import annotations

from imagenet_ops.errors import ImagenetOpsError


class LocalAirflowError(ImagenetOpsError):
    """Base of the errors of the local Airflow."""


class AlreadyRunning(LocalAirflowError):
    """A living process holds the lock of the home."""


class ComponentDied(LocalAirflowError):
    """A process that ought to run until it is stopped has ended."""


class StartTimedOut(LocalAirflowError):
    """The components run, but some are not healthy."""


class RestError(LocalAirflowError):
    """An answer of the API that is not a success."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class DagImportFailed(LocalAirflowError):
    """A DAG is missing, and a file in the DAG folder could not be imported."""
