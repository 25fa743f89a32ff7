from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from imagenet_ops.adapters.file_store import FileStore
from imagenet_ops.adapters.object_store import ObjectStore
from imagenet_ops.commit import Committed, fingerprint, read, run_once
from imagenet_ops.errors import DataError, ObjectNotFound
from imagenet_ops.manifests import ManifestRef, SplitManifest, StoredObject, manifest_digest
from tests.fakes import MemoryStore

KEY = "birds/sample_validation/0123456789abcdef/manifest.json"
INPUTS = {"download": "d" * 64, "untar": "e" * 64}
SETTINGS = {"seed": 1, "nested": {"b": [1, 2], "a": None}, "text": "ä"}


def split(num_train: int = 10, input_key: str = "birds/untar/1/manifest.json") -> SplitManifest:
    return SplitManifest(
        inputs={"untar": ManifestRef(key=input_key, digest="e" * 64)},
        validation=StoredObject(key="data/validation.parquet", num_bytes=3, sha256="f" * 64),
        num_train=num_train,
        num_validation=2,
    )


class Builder:
    """Builds a manifest, and counts how often."""

    def __init__(self, value: SplitManifest, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.value, self.meanwhile = value, meanwhile
        self.num_calls = 0

    def __call__(self) -> SplitManifest:
        self.num_calls += 1
        self.meanwhile()
        return self.value


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return FileStore(tmp_path) if request.param == "file" else MemoryStore()


def test_the_fingerprint_never_changes() -> None:
    """A change here would build everything again, in every store there is."""
    text = '["untar", 3, {"download": "D", "untar": "E"}, {"nested": {"a": null, "b": [1, 2]}, "seed": 1}]'
    inputs, settings = {"untar": "E", "download": "D"}, {"seed": 1, "nested": {"b": [1, 2], "a": None}}
    assert fingerprint("untar", 3, inputs, settings) == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert fingerprint("untar", 1, INPUTS, SETTINGS) == "77c1f8b35f385991"


OTHERS: dict[str, tuple[str, int, dict[str, str], dict[str, Any]]] = {
    "another stage": ("verify", 1, INPUTS, SETTINGS),
    "another version": ("untar", 2, INPUTS, SETTINGS),
    "another input": ("untar", 1, INPUTS | {"untar": "a" * 64}, SETTINGS),
    "an input under another name": ("untar", 1, {"download": "d" * 64, "verify": "e" * 64}, SETTINGS),
    "one input more": ("untar", 1, INPUTS | {"verify": "e" * 64}, SETTINGS),
    "no input": ("untar", 1, {}, SETTINGS),
    "another setting": ("untar", 1, INPUTS, SETTINGS | {"seed": 2}),
    "a setting of another type": ("untar", 1, INPUTS, SETTINGS | {"seed": "1"}),
    "a setting deep inside": ("untar", 1, INPUTS, SETTINGS | {"nested": {"b": [2, 1], "a": None}}),
    "one setting more": ("untar", 1, INPUTS, SETTINGS | {"new": None}),
    "no setting": ("untar", 1, INPUTS, {}),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_the_fingerprint_changes_with_each_ingredient(other: tuple[str, int, dict[str, str], dict[str, Any]]) -> None:
    assert fingerprint(*other) != fingerprint("untar", 1, INPUTS, SETTINGS)


def test_the_order_of_inputs_and_settings_does_not_matter() -> None:
    turned = fingerprint("untar", 1, dict(reversed(INPUTS.items())), dict(reversed(SETTINGS.items())))
    assert turned == fingerprint("untar", 1, INPUTS, SETTINGS)


def test_a_value_is_built_once_and_found_ever_after(store: ObjectStore) -> None:
    first, second = Builder(split()), Builder(split(num_train=99))
    assert run_once(store, KEY, SplitManifest, first) == Committed(KEY, split(), reused=False)
    assert run_once(store, KEY, SplitManifest, second) == Committed(KEY, split(), reused=True)
    assert (first.num_calls, second.num_calls) == (1, 0)
    assert read(store, KEY, SplitManifest) == split()


def test_a_build_that_raises_leaves_no_value_and_is_built_again(store: ObjectStore) -> None:
    def fail() -> None:
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        run_once(store, KEY, SplitManifest, Builder(split(), meanwhile=fail))
    assert store.head(KEY) is None
    assert run_once(store, KEY, SplitManifest, Builder(split())) == Committed(KEY, split(), reused=False)


def test_the_run_that_ends_second_takes_the_value_of_the_first(store: ObjectStore) -> None:
    winner = Builder(split(num_train=1))
    outcomes: list[Committed[SplitManifest]] = []
    loser = Builder(split(num_train=2), meanwhile=lambda: outcomes.append(run_once(store, KEY, SplitManifest, winner)))
    outcomes.append(run_once(store, KEY, SplitManifest, loser))
    assert outcomes == [
        Committed(KEY, split(num_train=1), reused=False),
        Committed(KEY, split(num_train=1), reused=True),
    ]
    assert (winner.num_calls, loser.num_calls) == (1, 1)
    assert read(store, KEY, SplitManifest) == split(num_train=1)


def test_a_missing_value_is_a_missing_object(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFound):
        read(store, KEY, SplitManifest)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"inputs": {}, "num_train": 1}', split().to_json()[:-9]])
def test_bytes_of_another_kind_are_told_with_their_key(store: ObjectStore, data: bytes) -> None:
    store.put(KEY, data)
    for ask in (
        lambda: read(store, KEY, SplitManifest),
        lambda: run_once(store, KEY, SplitManifest, Builder(split())),
    ):
        with pytest.raises(DataError, match=f"^{KEY}: not a SplitManifest: "):
            ask()


def test_a_value_with_a_key_too_many_is_of_another_kind(store: ObjectStore) -> None:
    store.put(KEY, json.dumps(split().model_dump(mode="json") | {"extra": 1}).encode())
    with pytest.raises(DataError) as caught:
        read(store, KEY, SplitManifest)
    assert str(caught.value) == f"{KEY}: not a SplitManifest: Extra inputs are not permitted"


def test_a_manifests_bytes_are_canonical() -> None:
    assert split().to_json().decode() == (
        '{\n "inputs": {\n  "untar": {\n'
        f'   "digest": "{"e" * 64}",\n   "key": "birds/untar/1/manifest.json"\n  }}\n }},\n'
        ' "num_train": 10,\n "num_validation": 2,\n "validation": {\n'
        f'  "key": "data/validation.parquet",\n  "num_bytes": 3,\n  "sha256": "{"f" * 64}"\n }}\n}}\n'
    )


def test_a_digest_counts_what_the_inputs_were_and_not_where_they_lie() -> None:
    here, there = split(input_key="birds/untar/1/manifest.json"), split(input_key="other/untar/2/manifest.json")
    assert manifest_digest(here.to_json()) == manifest_digest(there.to_json())
    assert manifest_digest(here.to_json()) != manifest_digest(split(num_train=11).to_json())
    other_input = here.model_copy(update={"inputs": {"untar": ManifestRef(key="k", digest="0" * 64)}})
    assert manifest_digest(here.to_json()) != manifest_digest(other_input.to_json())
