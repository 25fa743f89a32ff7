"""One worker's training, from the job to the model."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from numpy.typing import NDArray

from imagenet_ops.adapters.object_store import ObjectStore
from imagenet_ops.domain.learning_rate import learning_rate_at
from imagenet_ops.domain.worker_part import count_steps
from imagenet_ops.errors import DataError, ProcessFailed
from imagenet_ops.manifests import EpochMetrics, StoredObject, TrainerJob, TrainerResult
from imagenet_ops.settings import TrainingSettings
from imagenet_ops.trainer.checkpoint import export_model, find_checkpoint, load_checkpoint, save_checkpoint
from imagenet_ops.trainer.data import Augmentation, Batch, RecordPart, training_batches, validation_batches
from imagenet_ops.trainer.gang_store import GangStore
from imagenet_ops.trainer.networks import build_network

log = logging.getLogger(__name__)
_TOP = 5


def fit(store: ObjectStore, job_key: str) -> None:
    """Trains from the last checkpoint, or from new weights, to the job's last epoch; the first worker writes."""
    job = TrainerJob.from_json(job_key, store.get(job_key))
    training = job.training
    gang = GangStore(training.kv_store)
    worker = _Worker(store, job, gang)
    done = find_checkpoint(store, job.data_prefix)
    if done:
        load_checkpoint(store, done, worker.network, worker.trainer)
        log.info("going on after epoch %d", len(done.epochs))
    epochs = list(done.epochs) if done else []
    lines = _read_metrics(store, job)[: len(epochs)]
    while len(epochs) < training.num_epochs:
        start = time.monotonic()
        metrics = worker.run_epoch(len(epochs))
        epochs.append(metrics)
        if gang.rank == 0:
            # Before the checkpoint: a retry drops a line too many above, and could not make up one that is missing.
            lines.append(_metrics_line(metrics, worker.num_images_per_epoch / (time.monotonic() - start)))
            store.put(f"{job.data_prefix}metrics.jsonl", "".join(f"{line}\n" for line in lines).encode())
            save_checkpoint(store, job.data_prefix, worker.network, worker.trainer, epochs)
    if gang.rank == 0:
        symbol, parameters = worker.export(store)
        result = TrainerResult(symbol=symbol, parameters=parameters, epochs=epochs)
        store.put(f"{job.data_prefix}result.json", result.to_json())


class _Worker:
    """The network, its part of the data, and what happens to both in an epoch."""

    def __init__(self, store: ObjectStore, job: TrainerJob, gang: GangStore) -> None:
        training = job.training
        self._job, self._gang = job, gang
        self._contexts = [mx.gpu(device) for device in training.devices] or [mx.cpu()]
        self._batch_size = training.batch_size_per_device * len(self._contexts)
        self._train = RecordPart(store, job.train_chunks, gang.rank, gang.num_workers)
        self._validation = RecordPart(store, job.validation_chunks, gang.rank, gang.num_workers)
        num_train = sum(chunk.num_records for chunk in job.train_chunks)
        if num_train < gang.num_workers:
            raise DataError(f"{num_train} training images for {gang.num_workers} workers: each needs at least one")
        if not any(chunk.num_records for chunk in job.validation_chunks):
            raise DataError("no validation images")
        self._num_steps = count_steps(num_train, gang.num_workers, self._batch_size)
        self.num_images_per_epoch = self._num_steps * training.global_batch_size
        self._augmentation = Augmentation(
            edge=training.image_pixels,
            min_area=training.random_crop_min_area,
            mirror=training.random_mirror,
            validation_crop=training.validation_crop,
            mean=job.channel_mean,
            std=job.channel_std,
        )
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self.network = self._build_network()
        self.trainer = _build_trainer(self.network, training, gang)

    def run_epoch(self, epoch: int) -> EpochMetrics:
        """Trains over the part once, then validates; the numbers are of all workers together."""
        learning_rate, trained = self._train_once(epoch)
        self._share_running_statistics()
        validated = self._validate()
        self._require_equal_weights()
        train_loss, train_right, _, num_trained = self._gang.sum(trained).tolist()
        loss, right, right_in_top, num_validated = self._gang.sum(validated).tolist()
        if not math.isfinite(train_loss + loss):
            raise ProcessFailed(f"epoch {epoch + 1}: the loss is {train_loss + loss}; a lower learning rate may help")
        metrics = EpochMetrics(
            epoch=epoch + 1,
            learning_rate=learning_rate,
            train_loss=round(train_loss / num_trained, 6),
            train_top1=round(train_right / num_trained, 6),
            validation_loss=round(loss / num_validated, 6),
            validation_top1=round(right / num_validated, 6),
            validation_top5=round(right_in_top / num_validated, 6),
            num_validation=round(num_validated),
        )
        log.info("epoch %d: validation top-1 %.4f", metrics.epoch, metrics.validation_top1)
        return metrics

    def export(self, store: ObjectStore) -> tuple[StoredObject, StoredObject]:
        """Writes the model as it is."""
        return export_model(store, self._job.data_prefix, self.network, self._blank_image(self._contexts[0]))

    def _train_once(self, epoch: int) -> tuple[float, NDArray[np.float64]]:
        job, training = self._job, self._job.training
        seed = (job.seed, epoch, self._gang.rank)
        # Dropout: other masks on every worker, and the same ones when an epoch is trained again after a crash.
        mx.random.seed(int(np.random.SeedSequence(seed).generate_state(1)[0]) % 2**31)
        batches = training_batches(
            self._train, self._augmentation, self._batch_size, self._num_steps, seed, training.decode_threads
        )
        totals = np.zeros(4)
        for step, batch in enumerate(batches, start=epoch * self._num_steps):
            rate = learning_rate_at(
                step, self._num_steps, training.num_epochs, training.learning_rate, training.schedule
            )
            self.trainer.set_learning_rate(rate)
            images, labels = self._load(batch)
            with autograd.record():
                outputs = [self.network(image) for image in images]
                losses = [self._loss(output, label) for output, label in zip(outputs, labels, strict=True)]
            autograd.backward(losses)
            # The servers add the workers' gradients up, so the step divides by the global batch.
            self.trainer.step(training.global_batch_size)
            totals += self._count(outputs, batch)
        return round(rate, 9), totals

    def _validate(self) -> NDArray[np.float64]:
        totals = np.zeros(4)
        threads = self._job.training.decode_threads
        for batch in validation_batches(self._validation, self._augmentation, self._batch_size, threads):
            images, _ = self._load(batch)
            totals += self._count([self.network(image) for image in images], batch)
        mx.nd.waitall()
        return totals

    def _load(self, batch: Batch) -> tuple[list[Any], list[Any]]:
        split = gluon.utils.split_and_load
        return split(mx.nd.array(batch.images), self._contexts), split(mx.nd.array(batch.labels), self._contexts)

    def _count(self, outputs: list[Any], batch: Batch) -> NDArray[np.float64]:
        """As `count_right`; repeats do not count."""
        logits = np.concatenate([output.asnumpy() for output in outputs])[: batch.num_valid]
        return count_right(logits, batch.labels[: batch.num_valid])

    def _build_network(self) -> Any:
        training = self._job.training
        mx.random.seed(self._job.seed % 2**31)
        np.random.seed(self._job.seed % 2**32)  # mxnet's initialisers draw from both
        network = build_network(training, self._job.num_classes)
        # Shapes first: weights are then made at once, by no forward pass (see _build_trainer).
        network.infer_shape(self._blank_image(mx.cpu()))
        network.initialize(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2), ctx=self._contexts)
        network.hybridize(static_alloc=True)
        return network

    def _blank_image(self, context: Any) -> Any:
        edge = self._job.training.image_pixels
        return mx.nd.zeros((1, 3, edge, edge), ctx=context)

    def _share_running_statistics(self) -> None:
        """BatchNorm's means and variances become the average over all workers, so that all hold one model."""
        parameters = [parameter for parameter in self.network.collect_params().values() if parameter.grad_req == "null"]
        if not parameters:
            return
        mine = [np.mean([data.asnumpy() for data in parameter.list_data()], axis=0) for parameter in parameters]
        flat = self._gang.sum(np.concatenate([array.ravel() for array in mine])) / self._gang.num_workers
        for parameter, array in zip(parameters, mine, strict=True):
            parameter.set_data(mx.nd.array(flat[: array.size].reshape(array.shape)))
            flat = flat[array.size :]
        mx.nd.waitall()

    def _require_equal_weights(self) -> None:
        """Raises ProcessFailed where this worker's weights are not the first one's."""
        digest = hashlib.sha256()
        for parameter in self.network.collect_params().values():
            first, *others = [data.asnumpy().tobytes() for data in parameter.list_data()]
            if any(other != first for other in others):
                raise ProcessFailed(f"worker {self._gang.rank}: {parameter.name} is not the same on all its devices")
            digest.update(first)
        mine = int.from_bytes(digest.digest()[:2], "big")
        if self._gang.of_first(mine) != mine:
            raise ProcessFailed(f"worker {self._gang.rank}: its weights are not those of worker 0 any more")


def _build_trainer(network: Any, training: TrainingSettings, gang: GangStore) -> Any:
    """The optimizer runs on the workers, where its state can be saved; the servers only add gradients up."""
    options = {"learning_rate": training.learning_rate, "wd": training.weight_decay}
    if training.optimizer != "adam":
        options["momentum"] = training.momentum
    trainer = gluon.Trainer(
        network.collect_params(), training.optimizer, options, kvstore=gang.kv, update_on_kvstore=False
    )
    # Hands out the first worker's weights and waits until they are there. Left to the first step, the pull of a weight
    # and the push of its gradient race for the same key, and a worker's weight can silently become a gradient.
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()
    return trainer


def count_right(logits: NDArray[np.float32], labels: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sum of cross-entropies, right answers, right among the first five, images.

    Of classes with equal logits the lower label comes first, as with argmax: a network that can't tell two classes
    apart is not right about both.
    """
    truth = labels.astype(int)[:, None]
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    of_label = np.take_along_axis(shifted, truth, axis=1)
    loss = np.log(np.exp(shifted).sum(axis=1)) - of_label[:, 0]
    lower = np.arange(logits.shape[1]) < truth
    num_before = ((shifted > of_label) | ((shifted == of_label) & lower)).sum(axis=1)
    return np.array([loss.sum(), (num_before == 0).sum(), (num_before < _TOP).sum(), len(labels)])


def _metrics_line(metrics: EpochMetrics, images_per_second: float) -> str:
    return json.dumps({**metrics.model_dump(), "images_per_second": round(images_per_second, 1)})


def _read_metrics(store: ObjectStore, job: TrainerJob) -> list[str]:
    key = f"{job.data_prefix}metrics.jsonl"
    return store.get(key).decode().splitlines() if store.head(key) else []
