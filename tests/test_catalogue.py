from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from imagenet_ops.catalogue import find_dataset, list_datasets, load_dataset
from imagenet_ops.errors import ConfigError
from imagenet_ops.settings import NETWORK_LAYERS, LearningRateSchedule, SourceSettings

REPOSITORY = Path(__file__).parents[1]
SHIPPED = sorted((REPOSITORY / "dags" / "datasets").glob("*.yaml"))
REQUIRED = {
    "title": "title: Birds\n",
    "sources": "sources:\n  - url: birds.tar\n",
    "layout": "layout: class_tars\n",
}
KNOWN_KEYS = (
    "title, licence, sources, layout, synset_names, min_images_per_class, validation_per_class, seed, "
    "profile, short_edge_pixels, jpeg_quality, enlarge, check, long_edge_pixels, max_kept_bytes, keep_grey, "
    "keep_metadata, max_seconds_per_image, also_write, num_chunks, target_chunk_bytes, max_skipped_fraction, "
    "max_skipped_per_class, training"
)


def write(folder: Path, text: str, name: str = "birds.yaml") -> Path:
    """A catalogue file of `text`, with the required keys that it does not have."""
    given = {line.partition(":")[0] for line in text.splitlines()}
    path = folder / name
    path.write_text("".join(lines for key, lines in REQUIRED.items() if key not in given) + text, encoding="utf-8")
    return path


def fault_in(path: Path, overrides: dict[str, Any] | None = None) -> str:
    """The error's text without the file's name, which stands in front of each line."""
    with pytest.raises(ConfigError) as caught:
        load_dataset(path, overrides)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return "\n".join(line.removeprefix(f"{path}: ") for line in lines)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_file_loads(path: Path) -> None:
    settings = load_dataset(path)
    assert settings.name == path.stem
    assert all("://" in source.url for source in settings.sources)


def test_three_datasets_are_shipped() -> None:
    assert [path.stem for path in SHIPPED] == ["demo", "ilsvrc2012", "imagenet_full"]


def test_the_full_job_is_the_one_that_was_published() -> None:
    settings = load_dataset(REPOSITORY / "dags" / "datasets" / "imagenet_full.yaml")
    assert (settings.min_images_per_class, settings.validation_per_class) == (500, 50)
    assert settings.training.global_batch_size == 32 * 256


def test_the_least_file_has_the_tutorials_numbers(tmp_path: Path) -> None:
    settings = load_dataset(write(tmp_path, ""))
    assert settings.model_dump(exclude={"training", "sources"}) == {
        "name": "birds",
        "title": "Birds",
        "licence": None,
        "layout": "class_tars",
        "synset_names": None,
        "min_images_per_class": 500,
        "validation_per_class": 50,
        "seed": 0,
        "profile": "fast",
        "short_edge_pixels": 480,
        "jpeg_quality": 90,
        "enlarge": False,
        "check": "decode",
        "long_edge_pixels": 65_500,
        "max_kept_bytes": 2**18,
        "keep_grey": True,
        "keep_metadata": False,
        "max_seconds_per_image": 60,
        "also_write": [],
        "num_chunks": 8,
        "target_chunk_bytes": None,
        "max_skipped_fraction": 0.001,
        "max_skipped_per_class": 20,
    }


FAULTS = {
    "a misspelt key": (
        "min_images_per_clas: 3\n",
        "min_images_per_clas: unknown key; did you mean min_images_per_class?",
    ),
    "a misspelt key of the training": (
        "training:\n  num_epoch: 3\n",
        "training.num_epoch: unknown key; did you mean num_epochs?",
    ),
    "a misspelt key of the schedule": (
        "training:\n  schedule:\n    step_epoch: [1]\n",
        "training.schedule.step_epoch: unknown key; did you mean step_epochs?",
    ),
    "a misspelt key of a source": (
        "sources:\n  - url: a.tar\n    sha265: x\n",
        "sources.0.sha265: unknown key; did you mean sha256?",
    ),
    "a key like no other": ("colour: red\n", f"colour: unknown key; known here: {KNOWN_KEYS}"),
    "a key like no other of a source": (
        "synset_names:\n  url: a.tsv\n  xyz: 1\n",
        "synset_names.xyz: unknown key; known here: url, sha256, md5, num_bytes",
    ),
    "a key that is a number": ("1: 2\n", "1: keys should be strings, given 1"),
    "the name": ("name: birds\n", "name: the file's own name is the dataset's; leave the key out"),
    "a negative number": ("num_chunks: -4\n", "num_chunks: input should be greater than or equal to 1, given -4"),
    "a negative size": (
        "sources:\n  - url: a.tar\n    num_bytes: -1\n",
        "sources.0.num_bytes: input should be greater than or equal to 0, given -1",
    ),
    "a quality over 100": ("jpeg_quality: 101\n", "jpeg_quality: input should be less than or equal to 100, given 101"),
    "a momentum of one": ("training:\n  momentum: 1\n", "training.momentum: input should be less than 1, given 1"),
    "a rate that is no number": (
        "training:\n  learning_rate: .nan\n",
        "training.learning_rate: input should be less than or equal to 100, given nan",
    ),
    "an unknown network": (
        "training:\n  network: resnext\n",
        "training.network: input should be 'resnet', 'alexnet', 'inception_v3', 'mobilenet' or 'vgg', given 'resnext'",
    ),
    "a depth that the network hasn't": (
        "training:\n  network: vgg\n  num_layers: 50\n",
        "training: num_layers of vgg is one of [11, 13, 16, 19], given 50",
    ),
    "images too small for the network": (
        "training:\n  network: inception_v3\n  num_layers: 0\n",
        "training: image_pixels of inception_v3 is at least 299, given 224",
    ),
    "an unknown layout": (
        "layout: zip\n",
        "layout: input should be 'class_tars' or 'class_folders', given 'zip'",
    ),
    "a word for a number": ("num_chunks: eight\n", "num_chunks: input should be a valid integer, given 'eight'"),
    "a quoted number": ("num_chunks: '8'\n", "num_chunks: input should be a valid integer, given '8'"),
    "yes for a number": ("jpeg_quality: yes\n", "jpeg_quality: input should be a valid integer, given True"),
    "nothing for a number": ("num_chunks:\n", "num_chunks: input should be a valid integer, given None"),
    "a number for a text": ("title: 2011\n", "title: input should be a valid string, given 2011"),
    "one source that is no list": ("sources: a.tar\n", "sources: input should be a valid list, given 'a.tar'"),
    "no source": (
        "sources: []\n",
        "sources: list should have at least 1 item after validation, not 0, given []",
    ),
    "a source without a URL": ("sources:\n  - md5: null\n", "sources.0.url: is missing"),
    "a checksum of another kind": (
        "sources:\n  - url: a.tar\n    md5: abc\n",
        "sources.0.md5: string should match pattern '^[0-9a-f]{32}$', given 'abc'",
    ),
    "a GPU that is a text": (
        "training:\n  devices: [0, cpu]\n",
        "training.devices.1: input should be a valid integer, given 'cpu'",
    ),
    "no host": (
        "training:\n  hosts: []\n",
        "training.hosts: list should have at least 1 item after validation, not 0, given []",
    ),
    "as many to validate as there must be": (
        "validation_per_class: 500\n",
        "settings: validation_per_class (500) must be smaller than min_images_per_class (500), or a class could be "
        "left without training images",
    ),
    "several faults at once": (
        "training:\n  momentum: 1\nlayot: x\nseed: -1\nnum_chunks: 0\n",
        "seed: input should be greater than or equal to 0, given -1\n"
        "num_chunks: input should be greater than or equal to 1, given 0\n"
        "training.momentum: input should be less than 1, given 1\n"
        "layot: unknown key; did you mean layout?",
    ),
}


@pytest.mark.parametrize(("text", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_wrong_setting_is_told_with_file_key_and_what_is_allowed(tmp_path: Path, text: str, message: str) -> None:
    assert fault_in(write(tmp_path, text)) == message


def test_missing_keys_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "birds.yaml"
    path.write_text("{}")
    assert fault_in(path) == "title: is missing\nsources: is missing\nlayout: is missing"


NOT_SETTINGS = {
    "an empty file": (b"", "a mapping of settings is expected, found NoneType"),
    "a list": (b"- a\n", "a mapping of settings is expected, found list"),
    "a text": (b"birds\n", "a mapping of settings is expected, found str"),
    "broken YAML": (
        b"a: [\n",
        "is not valid YAML: while parsing a flow node expected the node content, but found '<stream end>' in "
        '"<unicode string>", line 2, column 1: ^',
    ),
    "code": (
        b"a: !!python/object/apply:os.getcwd []\n",
        "is not valid YAML: could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/object/apply:os.getcwd' in \"<unicode string>\", line 1, column 4: "
        "a: !!python/object/apply:os.getcwd [] ^",
    ),
    "another encoding": (
        b"title: V\xf6gel\n",
        "is not valid YAML: 'utf-8' codec can't decode byte 0xf6 in position 8: invalid start byte",
    ),
}


@pytest.mark.parametrize(("data", "message"), NOT_SETTINGS.values(), ids=NOT_SETTINGS.keys())
def test_a_file_that_is_no_settings_is_told_as_such(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "birds.yaml"
    path.write_bytes(data)
    assert fault_in(path) == message


def test_a_missing_file_is_told_as_such(tmp_path: Path) -> None:
    assert fault_in(tmp_path / "birds.yaml") == "can't be read: No such file or directory"


@pytest.mark.parametrize("name", ["Birds.yaml", "2birds.yaml", "bird-s.yaml", "vögel.yaml", f"{'b' * 64}.yaml"])
def test_a_file_whose_name_can_be_no_dataset_is_refused(tmp_path: Path, name: str) -> None:
    stem = name.removesuffix(".yaml")
    message = f"name: string should match pattern '^[a-z][a-z0-9_]{{0,62}}$', given {stem!r}"
    assert fault_in(write(tmp_path, "", name)) == message


@pytest.mark.parametrize("network", NETWORK_LAYERS)
def test_every_network_and_depth_that_the_trainer_has_is_taken(tmp_path: Path, network: str) -> None:
    for num_layers in NETWORK_LAYERS[network]:
        path = write(tmp_path, f"training:\n  network: {network}\n  num_layers: {num_layers}\n  image_pixels: 299\n")
        assert load_dataset(path).training.num_layers == num_layers


def test_a_relative_source_is_seen_from_the_file_and_others_stay(tmp_path: Path) -> None:
    folder = tmp_path / "catalogue"
    folder.mkdir()
    urls = ["a b/birds%20.tar", "../data/birds.tar", "/data/birds.tar", "https://host/birds.tar", "file:///x/birds"]
    text = "sources:\n" + "".join(f"  - url: {url}\n" for url in urls) + "synset_names:\n  url: names.tsv\n"
    settings = load_dataset(write(folder, text))
    assert [source.url for source in settings.sources] == [
        f"{folder.as_uri()}/a%20b/birds%2520.tar",
        f"{tmp_path.as_uri()}/data/birds.tar",
        "file:///data/birds.tar",
        "https://host/birds.tar",
        "file:///x/birds",
    ]
    assert settings.synset_names == SourceSettings(url=f"{folder.as_uri()}/names.tsv")


def test_checksums_stay_with_a_relative_source(tmp_path: Path) -> None:
    text = f"sources:\n  - url: a.tar\n    sha256: {'a' * 64}\n    num_bytes: 5\n"
    source = load_dataset(write(tmp_path, text)).sources[0]
    assert (source.sha256, source.num_bytes) == ("a" * 64, 5)


def test_overrides_are_laid_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "seed: 1\ntraining:\n  num_epochs: 9\n  schedule:\n    warmup_epochs: 2\n")
    overrides = {"seed": 2, "num_chunks": 3, "training.num_epochs": 4, "training.schedule.kind": "cosine"}
    settings = load_dataset(path, overrides)
    assert (settings.seed, settings.num_chunks, settings.training.num_epochs) == (2, 3, 4)
    assert settings.training.schedule == LearningRateSchedule(kind="cosine", warmup_epochs=2)
    assert load_dataset(path).seed == 1


OVERRIDE_FAULTS = {
    "a misspelt key": ({"training.num_epoch": 3}, "training.num_epoch: unknown key; did you mean num_epochs?"),
    "a wrong type": ({"num_chunks": "3"}, "num_chunks: input should be a valid integer, given '3'"),
    "the name": ({"name": "x"}, "name: the file's own name is the dataset's; leave the key out"),
    "a key in a text": ({"title.x": 3}, "title.x: can't be laid over title, which is 'Birds' and has no keys"),
}


@pytest.mark.parametrize(("overrides", "message"), OVERRIDE_FAULTS.values(), ids=OVERRIDE_FAULTS.keys())
def test_a_wrong_override_is_told_like_a_wrong_setting(tmp_path: Path, overrides: dict[str, Any], message: str) -> None:
    assert fault_in(write(tmp_path, ""), overrides) == message


def test_datasets_are_listed_by_name_and_other_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yaml", "c.yml", "README.md"):
        write(tmp_path, "", name)
    assert list_datasets(tmp_path) == {"a": tmp_path / "a.yaml", "b": tmp_path / "b.yaml"}
    assert find_dataset(tmp_path, "b") == tmp_path / "b.yaml"


def test_an_unknown_dataset_is_told_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_dataset(tmp_path, "birds")
    assert str(caught.value) == f"dataset 'birds' is not in {tmp_path}; known: none"
    write(tmp_path, "", "a.yaml")
    write(tmp_path, "", "b.yaml")
    with pytest.raises(ConfigError) as caught:
        find_dataset(tmp_path, "../b")
    assert str(caught.value) == f"dataset '../b' is not in {tmp_path}; known: a, b"


def test_a_missing_catalogue_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        list_datasets(tmp_path / "none")
    assert str(caught.value) == f"{tmp_path / 'none'}: no such catalogue folder"
