"""Every error of the package, sorted by what the caller does next.

ImagenetOpsError
├── ConfigError             fix the settings: fail, no retry
├── DataError               look at the data: fail, no retry
├── StorageError            try again: retry with a delay
│   ├── ObjectNotFound
│   ├── ChecksumMismatch
│   ├── SourceUnavailable
│   └── NoSpace
└── ProcessFailed           a gang's process ended badly: retry, the last checkpoint counts
"""

from __future__ import annotations


class ImagenetOpsError(Exception):
    """Base of all errors that the package raises on purpose; its text is meant for the user."""


class ConfigError(ImagenetOpsError):
    """A setting is wrong; the text names the file, the key, what was given and what is allowed."""


class DataError(ImagenetOpsError):
    """The data are not what the settings promise; the text names the object, expected and found."""


class StorageError(ImagenetOpsError):
    """Reading or writing an object failed in a way that may pass."""


class ObjectNotFound(StorageError):
    """No object lies under the key."""


class ChecksumMismatch(StorageError):
    """An object's size or digest is not the promised one."""


class SourceUnavailable(StorageError):
    """A source does not answer, or broke off in the middle."""


class NoSpace(StorageError):
    """The store's disk is full; nothing half-written stays."""


class ProcessFailed(ImagenetOpsError):
    """A process of a training gang ended before its time; the text holds the end of its log."""
