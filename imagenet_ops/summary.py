"""What a person wants to know of a built dataset and its classifier, as text."""

from __future__ import annotations

from collections.abc import Mapping

from imagenet_ops import commit
from imagenet_ops.adapters.object_store import ObjectStore
from imagenet_ops.keys import StageKeys
from imagenet_ops.manifests import DatasetReport, EpochMetrics, PackStatistics, TrainedModel


def summarise_dataset(report: DatasetReport) -> list[str]:
    """Classes, images and chunks, and what became of everything that is not in them."""
    lines = [f"classes    {report.num_classes_kept} kept, {report.num_classes_dropped} dropped for too few images"]
    for entry in report.classes[:_MOST_LINES]:
        lines.append(
            f"             {entry.synset}  {entry.num_train:>9,} train {entry.num_validation:>7,} val  {entry.name}"
        )
    lines += _more(len(report.classes))
    for gone in report.dropped[:_MOST_LINES]:
        lines.append(f"             {gone.synset}  {gone.num_images:>9,} images, dropped   {gone.name}")
    lines += _more(len(report.dropped))
    lines.append(f"images     {report.num_train:,} train, {report.num_validation:,} validation")
    lines += _reasons("rejected", "not an image", report.num_rejected_by_reason)
    lines += _reasons("skipped", "can't be decoded", report.num_skipped_by_reason)
    lines += _stored(report.statistics)
    size = report.record_bytes
    lines.append(
        f"chunks     {report.num_chunks}, {report.num_bytes:,} bytes; an image has {size.mean:,.0f} bytes on average"
    )
    return lines


def summarise_training(report: DatasetReport, model: TrainedModel) -> list[str]:
    """Accuracy an epoch, beside the accuracy of always answering the largest class."""
    lines = ["epoch      train loss   top-1    validation loss   top-1    top-5"]
    lines += [_epoch_line(epoch) for epoch in model.epochs]
    counts = [entry.num_validation for entry in report.classes]
    largest = max(range(len(counts)), key=lambda label: report.classes[label].num_train)
    share = counts[largest] / max(sum(counts), 1)
    gain = 100 * (model.epochs[-1].validation_top1 - share)
    lines.append(
        f"accuracy   {model.epochs[-1].validation_top1:.1%} top-1; always answering the largest class: {share:.1%} "
        f"({gain:+.1f} points)"
    )
    return lines


def summarise_places(store: ObjectStore, report_key: str, report: DatasetReport, model_key: str | None) -> list[str]:
    """Where the chunks, the report and the model lie."""
    chunks_key = report.inputs["pack_recordio"].key
    places = {"chunks": StageKeys.containing(chunks_key).inside("data/"), "report": report_key}
    if model_key:
        model = commit.read(store, model_key, TrainedModel)
        places["model"] = StageKeys.containing(model_key).inside(model.parameters.key)
    return [f"{name:<10} {store.url}/{key}" for name, key in places.items()]


_MOST_LINES = 12
_TREATMENTS = {"kept": "as they were", "shrunk": "shrunk", "enlarged": "enlarged", "reencoded": "encoded again"}


def _stored(statistics: PackStatistics) -> list[str]:
    counts = statistics.num_by_treatment
    treated = [f"{counts[treatment]:,} {text}" for treatment, text in _TREATMENTS.items() if counts.get(treatment)]
    lines = [
        f"stored     {', '.join(treated) or 'nothing'}: {statistics.num_source_bytes:,} bytes became "
        f"{statistics.num_stored_bytes:,}"
    ]
    if statistics.num_smaller:
        lines.append(
            f"           {statistics.num_smaller:>11,} are smaller than the short edge (enlarge: true enlarges them)"
        )
    return lines


def _more(count: int) -> list[str]:
    return [f"             … and {count - _MOST_LINES:,} more"] if count > _MOST_LINES else []


def _reasons(title: str, meaning: str, counts: Mapping[str, int]) -> list[str]:
    lines = [f"{title:<10} {sum(counts.values()):,} ({meaning})"]
    return lines + [f"             {count:>9,} {reason}" for reason, count in counts.items()]


def _epoch_line(epoch: EpochMetrics) -> str:
    return (
        f"{epoch.epoch:>5}      {epoch.train_loss:>10.4f}  {epoch.train_top1:>6.1%}    {epoch.validation_loss:>15.4f}  "
        f"{epoch.validation_top1:>6.1%}   {epoch.validation_top5:>6.1%}"
    )
