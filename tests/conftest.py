"""What pytest has to know of these tests."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "trainer: runs Python of the trainer's environment, which has mxnet")
