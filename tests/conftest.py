"""Fixtures of all tests: no network, a model cache of the session's own, a folder to run stages in."""

import os
import tempfile
from pathlib import Path

import pytest

# Read by libraries when they are imported, so set before any of them is.
_hub = tempfile.TemporaryDirectory(prefix="batchwright-hub-")
os.environ["HF_HOME"] = _hub.name
os.environ["HF_HUB_OFFLINE"] = "1"
# Toy matrices gain nothing from threads, and tests that run side by side lose much.
os.environ["OMP_NUM_THREADS"] = "1"


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
