"""The idempotency rule: an output lies under its fingerprint, and its manifest, written last, means done."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from imagenet_ops.adapters.object_store import ObjectStore
from imagenet_ops.manifests import Value

V = TypeVar("V", bound=Value)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Committed(Generic[V]):
    """A value that lies in the store; `reused` where an earlier run had written it."""

    key: str
    value: V
    reused: bool


def fingerprint(stage: str, version: int, input_digests: Mapping[str, str], settings: Mapping[str, Any]) -> str:
    """16 hex digits that change whenever the stage's output may."""
    text = json.dumps([stage, version, dict(input_digests), dict(settings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(store: ObjectStore, key: str, kind: type[V]) -> V:
    """The value under `key`. Raises ObjectNotFound, or DataError for bytes of another kind."""
    return kind.from_json(key, store.get(key))


def run_once(store: ObjectStore, key: str, kind: type[V], build: Callable[[], V]) -> Committed[V]:
    """The value under `key`, built and written only where there is none.

    `build` must have written everything that its value names before it returns. Of two runs at once both may build;
    the first to end writes the value, the other takes that one.
    """
    if store.head(key):
        log.info("reused %s", key)
        return Committed(key, read(store, key, kind), reused=True)
    value = build()
    if store.put_if_absent(key, value.to_json()):
        log.info("wrote %s", key)
        return Committed(key, value, reused=False)
    log.info("another run wrote %s first", key)
    return Committed(key, read(store, key, kind), reused=True)
