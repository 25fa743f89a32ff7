"""The summary, line by line."""

from __future__ import annotations

from imagenet_ops.manifests import (
    NO_STATISTICS,
    ClassReport,
    DatasetReport,
    DroppedClass,
    EpochMetrics,
    ManifestRef,
    SizeReport,
    StoredObject,
    TrainedModel,
)
from imagenet_ops.summary import summarise_dataset, summarise_places, summarise_training
from tests.fakes import MemoryStore

STATISTICS = NO_STATISTICS.model_copy(
    update={
        "num_by_treatment": {"kept": 1_000, "shrunk": 20},
        "num_smaller": 900,
        "num_source_bytes": 2_000_000,
        "num_stored_bytes": 1_200_000,
    }
)
SIZE = SizeReport(least=1, mean=12_345.6, greatest=99_999)


def report(classes: list[ClassReport], dropped: list[DroppedClass]) -> DatasetReport:
    return DatasetReport(
        inputs={"pack_recordio": ManifestRef(key="tiny/pack_recordio/0123456789abcdef/manifest.json", digest="")},
        num_classes_kept=len(classes),
        num_classes_dropped=len(dropped),
        num_train=sum(entry.num_train for entry in classes),
        num_validation=sum(entry.num_validation for entry in classes),
        num_chunks=5,
        num_bytes=1_234_567,
        num_rejected_by_reason={"empty": 1, "text": 1_200},
        num_skipped_by_reason={"JPEG cut short": 2},
        classes=classes,
        dropped=dropped,
        width_pixels=SIZE,
        height_pixels=SIZE,
        record_bytes=SIZE,
        statistics=STATISTICS,
        codec={"simplejpeg": "1.9.0"},
        channel_mean=[1.0, 2.0, 3.0],
        channel_std=[1.0, 2.0, 3.0],
    )


def kept(label: int, num_train: int, num_validation: int) -> ClassReport:
    synset = f"n{label:08d}"
    return ClassReport(
        label=label, synset=synset, name=f"class {label}", num_train=num_train, num_validation=num_validation
    )


def epoch(number: int, top1: float) -> EpochMetrics:
    return EpochMetrics(
        epoch=number,
        learning_rate=0.1,
        train_loss=2.34567,
        train_top1=0.5,
        validation_loss=1.5,
        validation_top1=top1,
        validation_top5=1.0,
        num_validation=80,
    )


def model(*epochs: EpochMetrics) -> TrainedModel:
    symbol = StoredObject(key="data/model-symbol.json", num_bytes=1, sha256="")
    parameters = StoredObject(key="data/model.params", num_bytes=1, sha256="")
    return TrainedModel(inputs={}, symbol=symbol, parameters=parameters, epochs=list(epochs))


def test_a_dataset_in_whole() -> None:
    dropped = [DroppedClass(synset="n00000007", name="rare", num_images=7)]
    assert summarise_dataset(report([kept(0, 1_234_567, 50), kept(1, 10, 50)], dropped)) == [
        "classes    2 kept, 1 dropped for too few images",
        "             n00000000  1,234,567 train      50 val  class 0",
        "             n00000001         10 train      50 val  class 1",
        "             n00000007          7 images, dropped   rare",
        "images     1,234,577 train, 100 validation",
        "rejected   1,201 (not an image)",
        "                     1 empty",
        "                 1,200 text",
        "skipped    2 (can't be decoded)",
        "                     2 JPEG cut short",
        "stored     1,000 as they were, 20 shrunk: 2,000,000 bytes became 1,200,000",
        "                   900 are smaller than the short edge (enlarge: true enlarges them)",
        "chunks     5, 1,234,567 bytes; an image has 12,346 bytes on average",
    ]


def test_of_many_classes_only_the_first_are_shown_and_the_rest_is_counted() -> None:
    dropped = [DroppedClass(synset=f"n1{number:07d}", name="rare", num_images=1) for number in range(1_012)]
    lines = summarise_dataset(report([kept(label, 10, 5) for label in range(13)], dropped))
    assert len([line for line in lines if " train " in line]) == 12
    assert len([line for line in lines if "dropped   " in line]) == 12
    assert [line.strip() for line in lines if "more" in line] == ["… and 1 more", "… and 1,000 more"]
    assert lines[0] == "classes    13 kept, 1012 dropped for too few images"


def test_exactly_as_many_classes_as_fit_need_no_line_for_more() -> None:
    assert not [line for line in summarise_dataset(report([kept(n, 9, 5) for n in range(12)], [])) if "more" in line]


def test_training_is_held_against_always_answering_the_class_with_most_training_images() -> None:
    lines = summarise_training(report([kept(0, 10, 60), kept(1, 90, 20)], []), model(epoch(0, 0.2), epoch(1, 0.75)))
    assert lines == [
        "epoch      train loss   top-1    validation loss   top-1    top-5",
        "    0          2.3457   50.0%             1.5000   20.0%   100.0%",
        "    1          2.3457   50.0%             1.5000   75.0%   100.0%",
        "accuracy   75.0% top-1; always answering the largest class: 25.0% (+50.0 points)",
    ]


def test_a_model_worse_than_always_answering_the_largest_class_loses_points() -> None:
    last = summarise_training(report([kept(0, 90, 40), kept(1, 10, 40)], []), model(epoch(0, 0.4)))[-1]
    assert last == "accuracy   40.0% top-1; always answering the largest class: 50.0% (-10.0 points)"


def test_places_are_full_urls_and_the_models_is_there_once_it_is_trained() -> None:
    store = MemoryStore()
    store.url = "file:///store"
    report_key, model_key = "tiny/verify/aaaaaaaaaaaaaaaa/manifest.json", "tiny/train/bbbbbbbbbbbbbbbb/manifest.json"
    built = report([kept(0, 1, 1)], [])
    places = [
        "chunks     file:///store/tiny/pack_recordio/0123456789abcdef/data/",
        "report     file:///store/tiny/verify/aaaaaaaaaaaaaaaa/manifest.json",
    ]
    assert summarise_places(store, report_key, built, None) == places
    store.put(model_key, model(epoch(0, 0.5)).to_json())
    assert summarise_places(store, report_key, built, model_key) == [
        *places,
        "model      file:///store/tiny/train/bbbbbbbbbbbbbbbb/data/model.params",
    ]
