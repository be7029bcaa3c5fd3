"""Fixtures of all tests: no network, a model cache of the session's own, a folder to run stages in."""

import gc
import logging
import multiprocessing
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

# Read by libraries when they are imported, so set before any of them is.
_hub = tempfile.TemporaryDirectory(prefix="batchwright-hub-")
os.environ["HF_HOME"] = _hub.name
os.environ["HF_HUB_OFFLINE"] = "1"
# Toy matrices gain nothing from threads, and tests that run side by side lose much.
os.environ["OMP_NUM_THREADS"] = "1"
# Imported once for all processes that tests start by forkserver; it takes seconds.
multiprocessing.set_forkserver_preload(["stages.train", "trainers.variants", "tests.train.toys"])


LONGEST = (
    "test_launch",
    "test_repro",
    "test_types",
    "test_retrain",
    "embed.test_stage",
    "test_own",
    "test_gpu_benchmark",
    "test_backbones",
)
"""Modules that take longest; they begin first, or the last of them would run while nothing else is left."""


WARM = "BATCHWRIGHT_TEST_PROGRAMS"


def pytest_configure(config: pytest.Config) -> None:
    """Start the programs of ``warm`` once for all processes of ``pytest -n``."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        from tests.warm import started

        stack = ExitStack()
        os.environ[WARM] = str(stack.enter_context(started()))
        config.add_cleanup(stack.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the modules that take longest to the front."""

    def rank(item: pytest.Item) -> int:
        module = item.nodeid.partition(".py::")[0].replace("/", ".")
        return next((place for place, name in enumerate(LONGEST) if module.endswith(f".{name}")), len(LONGEST))

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the million objects of imported libraries."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project folder with ``params.yaml``; the test runs in it."""
    from tests.helpers import write_params

    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for variable in ("BATCHWRIGHT_SCRATCH", "BATCHWRIGHT_WORKERS", "BEAM_OPTIONS"):
        monkeypatch.delenv(variable, raising=False)
    write_params(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A randomly initialised two-layer BERT as a sentence-transformers folder."""
    from tests.tiny_models import save_bert

    return save_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="session")
def warm() -> Iterator[Path]:
    """A folder with ``python`` and ``dvc`` that start in no time."""
    from tests.warm import started

    with nullcontext(Path(os.environ[WARM])) if WARM in os.environ else started() as programs:
        yield programs


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server on this machine."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket, as a URI; the environment says how to reach it."""
    from pyarrow.fs import S3FileSystem

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server)
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    name = f"bucket-{uuid.uuid4().hex}"
    S3FileSystem(endpoint_override=s3_server, allow_bucket_creation=True).create_dir(name)
    return f"s3://{name}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray cluster on this machine, which trainings connect to."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        ray.init(address="local", num_cpus=2, num_gpus=0, include_dashboard=False, logging_level="ERROR")
        yield
        ray.shutdown()
