"""Every name and number that Airflow is told, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

# Constant: a start date that moves would make a new DAG version at every parse.
START_DATE = datetime(2011, 9, 1, tzinfo=UTC)
TAGS = ["images", "mxnet"]
BROKEN_TAG = "broken settings"
OWNER = "imagenet-ops"
RETRIES = 3
RETRY_DELAY = timedelta(seconds=10)
MAX_RETRY_DELAY = timedelta(minutes=10)
# Mapped tasks of one run at once; the machine's own limit is core.parallelism.
MAX_ACTIVE_TASKS = 64
