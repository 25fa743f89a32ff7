"""The last whole epoch in the store: weights, the optimizer's state, the metrics so far.

{data_prefix}checkpoint/0003.params    weights and running statistics
{data_prefix}checkpoint/0003.states    momentum, equal on all workers
{data_prefix}checkpoint/latest.json    names both, written last: what it names is whole
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from imagenet_ops.adapters.object_store import ObjectStore
from imagenet_ops.manifests import EpochMetrics, StoredObject, Value


class Checkpoint(Value):
    """`epochs` are all that are done; keys are full."""

    parameters_key: str
    states_key: str
    epochs: list[EpochMetrics]


def find_checkpoint(store: ObjectStore, data_prefix: str) -> Checkpoint | None:
    """None where no epoch is done."""
    key = f"{data_prefix}checkpoint/latest.json"
    return Checkpoint.from_json(key, store.get(key)) if store.head(key) else None


def load_checkpoint(store: ObjectStore, checkpoint: Checkpoint, network: Any, trainer: Any) -> None:
    """Puts weights and optimizer state back; `trainer` must have met its key-value store already."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part"
        path.write_bytes(store.get(checkpoint.parameters_key))
        network.load_parameters(str(path))
        path.write_bytes(store.get(checkpoint.states_key))
        trainer.load_states(str(path))


def save_checkpoint(
    store: ObjectStore, data_prefix: str, network: Any, trainer: Any, epochs: list[EpochMetrics]
) -> None:
    """Writes the new one, then points to it, then removes all others, also what a crash in between had left."""
    stem = f"{data_prefix}checkpoint/{len(epochs):04d}"
    checkpoint = Checkpoint(parameters_key=f"{stem}.params", states_key=f"{stem}.states", epochs=epochs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part"
        network.save_parameters(str(path))
        store.put(checkpoint.parameters_key, path.read_bytes())
        trainer.save_states(str(path))
        store.put(checkpoint.states_key, path.read_bytes())
    latest_key = f"{data_prefix}checkpoint/latest.json"
    store.put(latest_key, checkpoint.to_json())
    for info in list(store.list(f"{data_prefix}checkpoint")):
        if info.key not in (latest_key, checkpoint.parameters_key, checkpoint.states_key):
            store.delete(info.key)


def export_model(store: ObjectStore, data_prefix: str, network: Any, images: Any) -> tuple[StoredObject, StoredObject]:
    """Symbol and parameters as `SymbolBlock.imports` and `mx.model.load_checkpoint('model', 0)` read them.

    `images` is any input of the network, on one of its devices.
    """
    # gluon exports only what a forward pass of this process has gathered: without one, a file without parameters.
    network(images).wait_to_read()
    with tempfile.TemporaryDirectory() as folder:
        network.export(str(Path(folder) / "model"), epoch=0)
        symbol, parameters = (
            _store_file(store, data_prefix, Path(folder) / name) for name in ("model-symbol.json", "model-0000.params")
        )
    return symbol, parameters


def _store_file(store: ObjectStore, data_prefix: str, path: Path) -> StoredObject:
    with store.open_writer(data_prefix + path.name) as writer:
        writer.write(path.read_bytes())
    return StoredObject(key=f"data/{path.name}", num_bytes=writer.num_bytes, sha256=writer.sha256())
