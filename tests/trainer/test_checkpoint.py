"""A checkpoint is whole or not there, and what is loaded goes on as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon

from imagenet_ops.manifests import EpochMetrics
from imagenet_ops.trainer.checkpoint import export_model, find_checkpoint, load_checkpoint, save_checkpoint
from tests.fakes import MemoryStore

PREFIX = "tiny/train/0123456789abcdef/data/"


class Model:
    """Two layers with running statistics and an optimizer with momentum."""

    def __init__(self, seed: int, optimizer: str = "sgd") -> None:
        mx.random.seed(seed)
        np.random.seed(seed)
        self.network = gluon.nn.HybridSequential(prefix="net_")
        with self.network.name_scope():
            self.network.add(gluon.nn.Dense(4, in_units=3), gluon.nn.BatchNorm(in_channels=4))
        self.network.initialize(mx.init.Xavier())
        self.network.hybridize(static_alloc=True)
        options = {"learning_rate": 0.1} | ({"momentum": 0.9} if optimizer == "sgd" else {})
        self.trainer = gluon.Trainer(
            self.network.collect_params(), optimizer, options, kvstore="local", update_on_kvstore=False
        )

    def step(self, number: int, rate: float = 0.1) -> None:
        self.trainer.set_learning_rate(rate)
        images = mx.nd.array(np.random.default_rng(number).normal(size=(5, 3)))
        with autograd.record():
            loss = (self.network(images) ** 2).sum()
        loss.backward()
        self.trainer.step(5)
        mx.nd.waitall()

    def weights(self) -> dict[str, list[float]]:
        return {name: value.data().asnumpy().ravel().tolist() for name, value in self.network.collect_params().items()}

    def save(self, store: Any, num_epochs: int) -> None:
        save_checkpoint(store, PREFIX, self.network, self.trainer, [epoch(number) for number in range(num_epochs)])

    def load(self, store: Any) -> int:
        """Returns the number of epochs that are done."""
        checkpoint = find_checkpoint(store, PREFIX)
        assert checkpoint is not None
        load_checkpoint(store, checkpoint, self.network, self.trainer)
        return len(checkpoint.epochs)


def epoch(number: int) -> EpochMetrics:
    return EpochMetrics(
        epoch=number + 1,
        learning_rate=0.1,
        train_loss=1.5,
        train_top1=0.5,
        validation_loss=1.25,
        validation_top1=0.75,
        validation_top5=1.0,
        num_validation=4,
    )


def keys(store: MemoryStore) -> list[str]:
    return [info.key.removeprefix(PREFIX) for info in store.list("")]


class Crash(Exception):
    """What a CrashingStore raises; no error of the package."""


class CrashingStore(MemoryStore):
    """Dies at its write or removal number `crash_at`, counted from 1."""

    def __init__(self, earlier: MemoryStore, crash_at: int) -> None:
        super().__init__()
        self.objects, self._left = dict(earlier.objects), crash_at

    def put(self, key: str, data: bytes) -> None:
        self._crash_if_due()
        super().put(key, data)

    def delete(self, key: str) -> None:
        self._crash_if_due()
        super().delete(key)

    def _crash_if_due(self) -> None:
        self._left -= 1
        if self._left <= 0:
            raise Crash


def test_there_is_no_checkpoint_before_the_first_epoch() -> None:
    assert find_checkpoint(MemoryStore(), PREFIX) is None


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_what_is_loaded_goes_on_exactly_as_what_was_saved(optimizer: str) -> None:
    store, straight, resumed = MemoryStore(), Model(1, optimizer), Model(2, optimizer)
    for number in range(3):
        straight.step(number)
    straight.save(store, 1)
    assert resumed.weights() != straight.weights()
    assert resumed.load(store) == 1
    assert resumed.weights() == straight.weights()
    for number, rate in ((3, 0.1), (4, 0.05), (5, 0.025)):
        straight.step(number, rate)
        resumed.step(number, rate)
        assert resumed.weights() == straight.weights()


def test_the_optimizers_state_matters() -> None:
    """Without it the model above would go on differently: the test can fail."""
    store, straight, resumed = MemoryStore(), Model(1), Model(2)
    for number in range(3):
        straight.step(number)
    straight.save(store, 1)
    states_key = f"{PREFIX}checkpoint/0001.states"
    fresh = MemoryStore()
    Model(3).save(fresh, 1)
    store.objects[states_key] = fresh.objects[states_key]
    resumed.load(store)
    straight.step(3)
    resumed.step(3)
    assert resumed.weights() != straight.weights()


def test_the_metrics_of_all_epochs_come_back() -> None:
    store = MemoryStore()
    Model(1).save(store, 3)
    checkpoint = find_checkpoint(store, PREFIX)
    assert checkpoint is not None
    assert checkpoint.epochs == [epoch(0), epoch(1), epoch(2)]


def test_the_earlier_checkpoint_is_removed() -> None:
    store, model = MemoryStore(), Model(1)
    model.save(store, 1)
    model.save(store, 2)
    assert keys(store) == ["checkpoint/0002.params", "checkpoint/0002.states", "checkpoint/latest.json"]


def test_latest_is_written_when_what_it_names_is_there() -> None:
    store = MemoryStore()
    Model(1).save(store, 1)
    assert [key.rpartition("/")[2] for key in store.writes] == ["0001.params", "0001.states", "latest.json"]


@pytest.mark.parametrize("crash_at", [1, 2, 3, 4, 5])
def test_a_crash_at_any_write_or_removal_leaves_a_whole_checkpoint_and_the_next_one_tidies_up(crash_at: int) -> None:
    model, earlier = Model(1), MemoryStore()
    model.step(1)
    model.save(earlier, 1)
    after_one = model.weights()
    model.step(2)
    store = CrashingStore(earlier, crash_at)
    with pytest.raises(Crash):
        model.save(store, 2)
    kept, retry = MemoryStore(), Model(2)
    kept.objects = dict(store.objects)
    assert retry.load(kept) == (1 if crash_at <= 3 else 2)
    assert retry.weights() == (after_one if crash_at <= 3 else model.weights())
    model.save(kept, 3)
    assert keys(kept) == ["checkpoint/0003.params", "checkpoint/0003.states", "checkpoint/latest.json"]


def test_a_crash_at_the_first_checkpoint_leaves_none() -> None:
    for crash_at in (1, 2, 3):
        store = CrashingStore(MemoryStore(), crash_at)
        with pytest.raises(Crash):
            Model(1).save(store, 1)
        assert find_checkpoint(store, PREFIX) is None


@pytest.mark.parametrize("num_steps", [1, 0])
def test_the_exported_model_answers_like_the_network_also_where_nothing_was_trained(
    tmp_path: Path, num_steps: int
) -> None:
    store, model = MemoryStore(), Model(1)
    for number in range(num_steps):
        model.step(number)
    before = model.weights()
    stored = export_model(store, PREFIX, model.network, mx.nd.zeros((1, 3)))
    assert model.weights() == before
    for entry in stored:
        assert len(store.objects[f"{PREFIX}{entry.key.removeprefix('data/')}"]) == entry.num_bytes
        (tmp_path / Path(entry.key).name).write_bytes(store.objects[f"{PREFIX}{entry.key.removeprefix('data/')}"])
    images = mx.nd.array(np.random.default_rng(0).normal(size=(5, 3)))
    imported = gluon.SymbolBlock.imports(
        str(tmp_path / "model-symbol.json"), ["data"], str(tmp_path / "model-0000.params")
    )
    assert np.array_equal(imported(images).asnumpy(), model.network(images).asnumpy())
    symbol, arguments, running = mx.model.load_checkpoint(str(tmp_path / "model"), 0)
    assert len(arguments) + len(running) == len(model.network.collect_params().keys())
    assert symbol.list_inputs()[0] == "data"
