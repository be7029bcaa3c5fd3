"""``python -m experiments.batches``: the comparison of methods to make batches, and the reference implementation's."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from batchwright.core.files import read_tsv
from experiments.batches import __main__ as batches
from experiments.batches.measure import measure, open_domain
from experiments.batches.methods import ALL, mirrored_k_means
from stages.filter import stage as judge
from tests.cluster.planted import objective, planted
from tests.helpers import plant_vectors, run_python, topic_pairs, write_pairs


@pytest.fixture
def data(workspace: Path) -> Path:
    for seed, domain in enumerate(("birds", "fish")):
        write_pairs(domain, topic_pairs(40, seed=seed))
    plant_vectors()
    judge.main()
    return workspace / "data"


def test_an_unknown_domain_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = data / "table.tsv"
    command = ["batches", str(data), "--domains", "birds", "nosuch", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        batches.main()
    assert ended.value.code == 2
    message = "error: argument --domains: not in the data: nosuch (there are: birds, fish)\n"
    assert capsys.readouterr().err.endswith(message)
    assert not output.exists()


def test_methods_run_in_processes_of_their_own(data: Path) -> None:
    line = f"-m experiments.batches {data} --methods random --batch-sizes 8 --output table.tsv".split()
    done = run_python(*line, cwd=data)
    assert done.returncode == 0, done.stderr
    assert [row["data"] for row in read_tsv(data / "table.tsv", made_by="experiments.batches")] == ["birds", "fish"]


@pytest.mark.parametrize(("sizes", "largest", "smallest"), [([25, 15], 25, 15), ([37, 3], 37, 3), ([], 0, 0)])
def test_the_true_cluster_sizes_are_reported(
    data: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], largest: int, smallest: int
) -> None:
    made = np.arange(40).reshape(5, 8), np.array(sizes, dtype=np.int64)
    monkeypatch.setitem(ALL, "given", lambda *_: made)
    row = measure(("birds", partial(open_domain, data, "birds"), 8, "given"))
    assert row is not None
    assert (row.batches, row.largest, row.smallest) == (5, largest, smallest)


def test_the_reference_has_the_settings_of_its_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[Any, NDArray[np.float32]]] = []

    class Watched(faiss.Kmeans):  # type: ignore[misc]
        def train(self, points: NDArray[np.float32], *rest: Any, **options: Any) -> float:
            trained.append((self, points.copy()))
            return float(super().train(points, *rest, **options))

    monkeypatch.setattr(faiss, "Kmeans", Watched)
    vectors, _ = planted(60, 3)
    mirrored_k_means(vectors, 10, 5)
    ((kmeans, points),) = trained
    settings = kmeans.cp
    assert (settings.niter, settings.nredo, settings.max_points_per_centroid) == (100, 3, 256)
    assert settings.spherical and settings.early_stop_threshold == 0
    assert (kmeans.k, settings.seed) == (6, 5)
    queries, documents = vectors.queries(slice(None)), vectors.documents(slice(None))
    both = np.concatenate([np.hstack([queries, documents]), np.hstack([documents, queries])])
    np.testing.assert_allclose(points, both / np.linalg.norm(both, axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("pairs", [1, 7])
def test_the_reference_puts_few_pairs_into_one_cluster(pairs: int) -> None:
    assert mirrored_k_means(planted(pairs, 1)[0], 10, 0).tolist() == [0] * pairs


def test_the_reference_finds_planted_topics_and_depends_on_the_seed() -> None:
    vectors, truth = planted(400, 4)
    assignment = mirrored_k_means(vectors, 50, 5)
    purity = sum(np.bincount(truth[assignment == cluster]).max() for cluster in np.unique(assignment)) / len(truth)
    assert purity > 0.9
    shuffled = np.random.default_rng(0).permutation(assignment)
    assert objective(vectors, assignment) > 2 * objective(vectors, shuffled)
    np.testing.assert_array_equal(assignment, mirrored_k_means(vectors, 50, 5))
    assert (assignment != mirrored_k_means(vectors, 50, 6)).any()
