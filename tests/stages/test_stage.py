"""How a stage is run: what decides where its output lies, what is reused, and what a part may rely on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from imagenet_ops.adapters.codec_versions import codec_versions
from imagenet_ops.errors import ConfigError, DataError, ObjectNotFound
from imagenet_ops.keys import StageKeys, part_name
from imagenet_ops.local_run import look_ahead, run_pipeline, run_single
from imagenet_ops.manifests import ArchiveManifest, Chunk, ClassManifest, DatasetManifest, DatasetReport, StagePlan
from imagenet_ops.stages import download, filter_rare_classes, pack_recordio, sample_validation, untar, verify
from imagenet_ops.stages.pipeline import PIPELINE, STAGE_NAMES, find_mapped_stage, find_stage
from imagenet_ops.stages.stage import StageContext, build_part, finish, locate, plan_parts, run_stage
from tests.fakes import MemoryStore
from tests.tiny_dataset import Pipeline, contents, copy_of, run_tiny, settings


@pytest.fixture(scope="module")
def _sampled(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    return run_tiny(tmp_path_factory.mktemp("source"), last_stage="sample_validation")


@pytest.fixture
def sampled(_sampled: Pipeline) -> Pipeline:
    """A dataset up to the sample, in a store of its own."""
    copy = Pipeline(copy_of(_sampled.store), _sampled.context.dataset)
    copy.keys = dict(_sampled.keys)
    return copy


def with_settings(context: StageContext, **changes: object) -> StageContext:
    return dataclasses.replace(context, dataset=context.dataset.model_copy(update=changes))


def test_a_manifest_lies_under_dataset_stage_and_fingerprint(sampled: Pipeline) -> None:
    for stage, key in sampled.keys.items():
        keys = StageKeys.containing(key)
        assert key == f"tiny/{stage}/{keys.fingerprint}/manifest.json"
        assert len(keys.fingerprint) == 16 and set(keys.fingerprint) <= set("0123456789abcdef")


def test_a_manifest_names_every_earlier_stage_of_the_pipeline(sampled: Pipeline) -> None:
    sampled.run("verify")
    report = sampled.manifest("verify", DatasetReport)
    assert {stage: ref.key for stage, ref in report.inputs.items()} == {
        stage: key for stage, key in sampled.keys.items() if stage != "verify"
    }


def test_a_raised_version_moves_the_output(sampled: Pipeline) -> None:
    stage = filter_rare_classes.STAGE
    newer = dataclasses.replace(stage, version=stage.version + 1)
    input_key = sampled.keys["untar"]
    assert locate(sampled.context, newer, input_key).keys != locate(sampled.context, stage, input_key).keys


def test_two_datasets_with_the_same_settings_do_not_meet(sampled: Pipeline) -> None:
    other = with_settings(sampled.context, name="other")
    assert run_stage(other, download.STAGE, None).startswith("other/download/")


def test_a_finished_stage_is_taken_from_the_store_without_its_build(sampled: Pipeline) -> None:
    def fail(run: object) -> ClassManifest:
        raise AssertionError("built again")

    stage = dataclasses.replace(filter_rare_classes.STAGE, build=fail)
    assert run_stage(sampled.context, stage, sampled.keys["untar"]) == sampled.keys["filter_rare_classes"]
    with pytest.raises(AssertionError, match="built again"):
        run_stage(with_settings(sampled.context, min_images_per_class=5), stage, sampled.keys["untar"])


def test_a_mapped_stage_asks_only_for_the_parts_that_are_missing(sampled: Pipeline) -> None:
    context, stage, input_key = sampled.context, pack_recordio.STAGE, sampled.keys["sample_validation"]
    parts = plan_parts(context, stage, input_key)
    assert [part_name(part) for part in parts] == ["train_00000", "train_00001", "validation_00000"]
    assert build_part(context, stage, parts[1]) == parts[1]
    assert plan_parts(context, stage, input_key) == [parts[0], parts[2]]
    for part in (parts[2], parts[0]):
        build_part(context, stage, part)
    assert plan_parts(context, stage, input_key) == []
    finish(context, stage, input_key)
    assert plan_parts(context, stage, input_key) == []


def test_a_finished_mapped_stage_has_nothing_to_build_even_when_its_parts_are_gone(sampled: Pipeline) -> None:
    sampled.run("pack_recordio")
    for info in list(sampled.store.list("tiny/pack_recordio")):
        if "/parts/" in info.key or info.key.endswith("plan.json"):
            sampled.store.delete(info.key)
    assert plan_parts(sampled.context, pack_recordio.STAGE, sampled.keys["sample_validation"]) == []


def test_a_part_that_is_there_is_not_built_again(sampled: Pipeline) -> None:
    store = sampled.store
    assert isinstance(store, MemoryStore)
    part = plan_parts(sampled.context, pack_recordio.STAGE, sampled.keys["sample_validation"])[0]
    build_part(sampled.context, pack_recordio.STAGE, part)
    store.writes.clear()
    assert build_part(sampled.context, pack_recordio.STAGE, part) == part
    assert store.writes == []


def test_the_order_in_which_parts_are_built_changes_nothing(sampled: Pipeline) -> None:
    stage, input_key = pack_recordio.STAGE, sampled.keys["sample_validation"]
    results = []
    for reverse in (False, True):
        context = dataclasses.replace(sampled.context, store=copy_of(sampled.store))
        for part in sorted(plan_parts(context, stage, input_key), reverse=reverse):
            build_part(context, stage, part)
        finish(context, stage, input_key)
        results.append(contents(context.store))
    assert results[0] == results[1]


def test_a_part_is_built_with_the_settings_of_its_plan_whatever_the_catalogue_says_now(sampled: Pipeline) -> None:
    stage, input_key = pack_recordio.STAGE, sampled.keys["sample_validation"]
    part = plan_parts(sampled.context, stage, input_key)[0]
    build_part(with_settings(sampled.context, jpeg_quality=5, short_edge_pixels=8, seed=99), stage, part)
    expected = Pipeline(copy_of(_without_parts(sampled)), sampled.context.dataset).run("pack_recordio")
    chunk: Chunk = expected.manifest("pack_recordio", DatasetManifest).chunks[0]
    assert Chunk.from_json(part, sampled.store.get(part)) == chunk


def _without_parts(pipeline: Pipeline) -> MemoryStore:
    store = copy_of(pipeline.store)
    for key in list(store.objects):
        if key.startswith("tiny/pack_recordio"):
            store.delete(key)
    return store


def test_a_stage_is_not_finished_while_a_part_is_missing(sampled: Pipeline) -> None:
    stage, input_key = pack_recordio.STAGE, sampled.keys["sample_validation"]
    parts = plan_parts(sampled.context, stage, input_key)
    for part in parts[:-1]:
        build_part(sampled.context, stage, part)
    with pytest.raises(ObjectNotFound, match=parts[-1]):
        finish(sampled.context, stage, input_key)
    assert sampled.store.head(locate(sampled.context, stage, input_key).keys.manifest) is None


def test_neither_part_nor_end_goes_without_a_plan(sampled: Pipeline) -> None:
    stage, input_key = pack_recordio.STAGE, sampled.keys["sample_validation"]
    keys = locate(sampled.context, stage, input_key).keys
    with pytest.raises(ObjectNotFound, match=keys.plan):
        build_part(sampled.context, stage, keys.part("train_00000"))
    with pytest.raises(ObjectNotFound, match=keys.plan):
        finish(sampled.context, stage, input_key)


def test_the_plan_holds_inputs_settings_and_parts(sampled: Pipeline) -> None:
    plan_parts(sampled.context, pack_recordio.STAGE, sampled.keys["sample_validation"])
    keys = locate(sampled.context, pack_recordio.STAGE, sampled.keys["sample_validation"]).keys
    plan = StagePlan.from_json(keys.plan, sampled.store.get(keys.plan))
    assert list(plan.inputs) == ["download", "filter_rare_classes", "sample_validation", "untar"]
    assert plan.part_names == ["train_00000", "train_00001", "validation_00000"]
    assert plan.settings.pop("codec") == codec_versions()
    assert plan.settings == {
        "seed": 7,
        "profile": "fast",
        "short_edge_pixels": 12,
        "long_edge_pixels": 65_500,
        "jpeg_quality": 90,
        "enlarge": False,
        "check": "decode",
        "max_kept_bytes": 2**18,
        "keep_grey": True,
        "keep_metadata": False,
        "max_seconds_per_image": 60,
        "num_chunks": 2,
        "target_chunk_bytes": None,
        "also_write": [],
    }


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"{}", b'{"inputs": {"download": 5}}', b"\xff"], ids=repr)
def test_an_input_manifest_that_is_damaged_is_told_by_its_key(sampled: Pipeline, damaged: bytes) -> None:
    key = sampled.keys["untar"]
    sampled.store.put(key, damaged)
    with pytest.raises(DataError, match=key):
        run_stage(sampled.context, filter_rare_classes.STAGE, key)


def test_an_input_manifest_that_is_gone_is_told_by_its_key(sampled: Pipeline) -> None:
    key = sampled.keys["untar"]
    sampled.store.delete(key)
    with pytest.raises(ObjectNotFound, match=key):
        run_stage(sampled.context, filter_rare_classes.STAGE, key)


def test_the_stages_come_in_the_order_of_the_pipeline() -> None:
    assert STAGE_NAMES == (
        "download", "untar", "filter_rare_classes", "sample_validation", "pack_recordio", "verify", "train",
    )  # fmt: skip
    assert [find_stage(stage.name) for stage in PIPELINE] == list(PIPELINE)
    assert find_mapped_stage("untar") is untar.STAGE


def test_a_stage_that_is_not_there_or_not_mapped_is_told() -> None:
    with pytest.raises(ConfigError, match="stage 'unter': expected one of download, untar, filter_rare_classes"):
        find_stage("unter")
    with pytest.raises(ConfigError, match="stage verify: is not a mapped stage"):
        find_mapped_stage(verify.STAGE.name)


def test_looking_ahead_tells_what_is_there_and_writes_nothing(sampled: Pipeline) -> None:
    before = contents(sampled.store)
    outcomes = {outcome.stage: outcome for outcome in look_ahead(sampled.context)}
    assert contents(sampled.store) == before
    assert list(outcomes) == list(STAGE_NAMES)
    assert [stage for stage, outcome in outcomes.items() if outcome.done] == list(STAGE_NAMES[:4])
    assert [outcomes[stage].manifest_key for stage in STAGE_NAMES[:4]] == list(sampled.keys.values())
    assert outcomes["pack_recordio"].manifest_key is not None
    assert outcomes["verify"].manifest_key is outcomes["train"].manifest_key is None


def test_a_single_stage_runs_over_what_the_earlier_ones_left(sampled: Pipeline) -> None:
    built = run_single(sampled.context, "pack_recordio", jobs=1)
    again = run_single(sampled.context, "pack_recordio", jobs=1)
    assert (built.done, again.done) == (False, True)
    assert built.manifest_key == again.manifest_key == sampled.run("pack_recordio").keys["pack_recordio"]


def test_a_single_stage_out_of_order_is_told_with_the_one_that_is_missing(sampled: Pipeline) -> None:
    with pytest.raises(ConfigError, match="stage verify: pack_recordio has not run with these settings yet; run it"):
        run_single(sampled.context, "verify", jobs=1)


def test_a_run_stops_behind_its_last_stage_and_knows_what_was_reused(sampled: Pipeline) -> None:
    outcomes = list(run_pipeline(sampled.context, "pack_recordio", jobs=1))
    assert [outcome.stage for outcome in outcomes] == list(STAGE_NAMES[:5])
    assert [outcome.done for outcome in outcomes] == [True] * 4 + [False]
    with pytest.raises(ConfigError, match="expected one of"):
        list(run_pipeline(sampled.context, "all", jobs=1))


def test_the_digest_of_an_input_counts_and_not_where_it_lies(tmp_path: Path, sampled: Pipeline) -> None:
    """The same archive under another download, as after a touch of its file, leads to the same later outputs."""
    manifest = sampled.manifest("download", ArchiveManifest)
    elsewhere = StageKeys("tiny", "download", "0" * 16)
    sampled.store.put(elsewhere.manifest, manifest.to_json())
    assert locate(sampled.context, untar.STAGE, elsewhere.manifest).keys.manifest == sampled.keys["untar"]
    changed = manifest.model_copy(update={"archives": []})
    sampled.store.put(elsewhere.manifest, changed.to_json())
    assert locate(sampled.context, untar.STAGE, elsewhere.manifest).keys.manifest != sampled.keys["untar"]
    assert sample_validation.STAGE.read_settings(sampled.context).seed == settings([tmp_path]).seed
