"""From archives of images to a trained classifier: one DAG a file in `dags/datasets`.

    download ─► untar ─► filter_rare_classes ─► sample_validation ─► pack_recordio ─► verify ─► train

**What a run does.** The archives come into the object store; every image in them is indexed as a byte range; classes
with too few images go; the same number of images of every class is set aside for validation; the images are resized
and packed into RecordIO chunks, a task a chunk; every record is read back and reported on; a gang of processes trains
the classifier.

**What is safe.** Everything: clear any task, trigger again, kill any process. A stage's output lies under a fingerprint
of its inputs and settings, and its `manifest.json`, written last, means done. A task that finds it writes nothing. A
retry of `train` goes on from the last whole epoch.

**When a task fails.** A wrong setting or damaged data fail at once and the log's last line says what, where, what was
expected and what was found. Anything that may pass (disk, network, a killed process) is retried. Look at the log of the
task that failed first, in mapped tasks of the part with that name.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, task

from imagenet_ops.catalogue import list_datasets, load_dataset
from imagenet_ops.errors import ConfigError
from imagenet_ops.orchestration import defaults
from imagenet_ops.orchestration.stage_tasks import mapped_stage, stage_task
from imagenet_ops.orchestration.trigger_params import build_params
from imagenet_ops.settings import DatasetSettings

CATALOGUE = Path(__file__).parent / "datasets"
DEFAULT_ARGS = {
    "owner": defaults.OWNER,
    "retries": defaults.RETRIES,
    "retry_delay": defaults.RETRY_DELAY,
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": defaults.MAX_RETRY_DELAY,
}


def build_dag(settings: DatasetSettings, file: Path) -> DAG:
    with DAG(
        dag_id=settings.name,
        description=settings.title,
        doc_md=f"# {settings.title}\n\n{__doc__}",
        start_date=defaults.START_DATE,
        schedule=None,
        catchup=False,
        max_active_tasks=defaults.MAX_ACTIVE_TASKS,
        params=build_params(settings),
        tags=defaults.TAGS,
        default_args=DEFAULT_ARGS,
    ) as dag:
        archives = stage_task(file, "download")()
        index = mapped_stage(file, "untar")(archives)
        classes = stage_task(file, "filter_rare_classes")(index)
        split = stage_task(file, "sample_validation")(classes)
        chunks = mapped_stage(file, "pack_recordio")(split)
        report = stage_task(file, "verify")(chunks)
        stage_task(file, "train")(report)
    return dag


def build_broken_dag(name: str, error: ConfigError) -> DAG:
    """In the place of a DAG whose file can't be read: shows why, and leaves all other datasets alone."""
    with DAG(
        dag_id=name,
        description="The settings have an error: see the documentation of this DAG.",
        doc_md=f"# The settings of {name} have an error\n\n```\n{error}\n```\n",
        start_date=defaults.START_DATE,
        schedule=None,
        tags=[*defaults.TAGS, defaults.BROKEN_TAG],
        default_args={"owner": defaults.OWNER},
    ) as dag:

        @task
        def check_settings(message: str) -> None:
            from airflow.exceptions import AirflowFailException

            raise AirflowFailException(message)

        check_settings(str(error))
    return dag


for dataset, path in list_datasets(CATALOGUE).items():
    try:
        globals()[dataset] = build_dag(load_dataset(path), path)
    except ConfigError as error:
        globals()[dataset] = build_broken_dag(dataset, error)
