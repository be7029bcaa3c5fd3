"""``python -m stages cluster``."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from batchwright.core.atomic import CHECKSUMS
from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.core.paths import PAIRS
from batchwright.formats.clusters import NONE, Clusters, read_draws
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import pair_parts
from batchwright.formats.vectors import Provenance, VectorStore
from stages.cluster.stage import main
from stages.filter import stage as judge
from tests.cluster.planted import objective
from tests.helpers import (
    plant_vectors,
    run_on_full_disk,
    run_stage,
    topic_pairs,
    tree,
    write_pairs,
    write_params,
    write_rows,
)

DATA = Path("data/clusters")


def judge_planted() -> None:
    """Plant vectors for all pairs, and run the filter."""
    plant_vectors()
    judge.main()


@pytest.fixture
def corpus(workspace: Path) -> Path:
    write_pairs("birds", topic_pairs(70))
    write_pairs("fish/small", topic_pairs(30, seed=1))
    judge_planted()
    return workspace


def test_the_clusters_of_every_domain_and_their_sizes_are_written(corpus: Path) -> None:
    assert main() == "100 pairs in 5 clusters of 2 domains"
    birds = Clusters.read(DATA, "birds", 0, pairs=70)
    metrics = read_json(Path("results/cluster.json"), made_by="cluster")
    assert metrics["birds"] == {
        "pairs": 70,
        "clusters": 4,
        "largest": birds.sizes.max(),
        "median": int(np.median(birds.sizes)),
        "smallest": birds.sizes.min(),
    }
    source = Provenance.read(DATA, "cluster")
    assert (source.vectors, source.weights) == ("planted", "weights of planted")


def test_two_runs_give_the_same_bytes_and_a_new_domain_changes_no_other(corpus: Path) -> None:
    main()
    first = tree(DATA)
    main()
    assert tree(DATA) == first
    write_pairs("mammals", topic_pairs(40, seed=2))
    judge_planted()
    main()
    second = tree(DATA)
    assert second.pop("provenance.json") != first.pop("provenance.json")
    assert {name: content for name, content in second.items() if "mammals" not in name} == first


def test_held_out_pairs_are_in_no_cluster(workspace: Path) -> None:
    pairs = topic_pairs(20)
    write_rows("birds", [(*pair, "test" if number < 5 else "train") for number, pair in enumerate(pairs)])
    judge_planted()
    main()
    assert Clusters.read(DATA, "birds", 0, pairs=15).sizes.sum() == 15


def test_a_domain_may_have_no_training_pairs_at_all(workspace: Path) -> None:
    write_pairs("birds", topic_pairs(20))
    write_pairs("mammals", topic_pairs(3, seed=1), split="test")
    judge_planted()
    assert main() == "20 pairs in 2 clusters of 2 domains"


def test_wrong_input_gives_one_message_and_no_output(corpus: Path) -> None:
    write_params(corpus, {"cluster.cluster_size": 0})
    before = tree(corpus)
    ended = run_stage("cluster", cwd=corpus)
    assert ended.returncode == 1
    said = "Input should be greater than 0 (found 0)"
    assert ended.stderr == f"cluster: error: params.yaml: parameter 'cluster.cluster_size': {said}\n"
    assert ended.stdout == ""
    shutil.rmtree(corpus / ".scratch" / "locks")
    assert tree(corpus) == before
    assert not DATA.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster.vectors": "other"}, "no vectors of that name; available: planted"),
        ({"cluster.cluster_size": 0}, "parameter 'cluster.cluster_size': .*greater than 0"),
        ({"base.seed": "x"}, "parameter 'base.seed'"),
    ],
)
def test_wrong_parameters_are_explained(corpus: Path, changes: dict[str, object], message: str) -> None:
    write_params(corpus, changes)
    with pytest.raises(InputError, match=message):
        main()
    assert not DATA.exists()


def test_a_fault_in_the_last_domain_leaves_the_old_clusters_intact(corpus: Path) -> None:
    main()
    first = tree(Path("data/clusters"))
    file = Path("data/vectors/planted/fish%2Fsmall/vectors.npy")
    vectors = np.load(file)
    vectors[3] = np.nan
    np.save(file, vectors)
    with pytest.raises(InputError, match=r"fish%2Fsmall/vectors\.npy: row 3 is not finite"):
        main()
    assert tree(DATA) == first
    assert [path.name for path in Path("data").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("pages", [0, 3])
def test_a_full_disk_gives_one_message_and_no_partial_output(corpus: Path, tmp_path: Path, pages: int) -> None:
    before = [name for name in tree(corpus) if not name.startswith(".scratch/")]
    ended, left = run_on_full_disk("cluster", cwd=corpus, pages=pages, outside=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("cluster: error: the disk is full; free space")
    assert len(ended.stderr.splitlines()) == 1
    assert sorted(name for name in left if not name.startswith(".scratch/")) == sorted(before)


def test_pairs_that_the_filter_dropped_are_in_no_cluster(corpus: Path) -> None:
    Path("data/negatives", CHECKSUMS).unlink()
    negatives = Negatives.read(Path("data/negatives"), "birds", 70)
    kept = np.arange(70) % 7 != 0
    replace(negatives, dropped=(~kept).astype(np.uint8)).write(Path("data/negatives"), "birds")
    main()
    clusters = Clusters.read(DATA, "birds", 0, pairs=70)
    np.testing.assert_array_equal(clusters.assignment == NONE, ~kept)
    assert len(clusters.sizes) == 3
    assert clusters.sizes.min() >= 16
    assert read_json(Path("results/cluster.json"), made_by="cluster")["birds"]["pairs"] == 60


def test_draws_are_different_clusterings(corpus: Path) -> None:
    write_params(corpus, {"cluster.draws": 2})
    main()
    first, second = read_draws(DATA, "birds", 70)
    assert (first.assignment != second.assignment).any()
    assert first.sizes.sum() == second.sizes.sum() == 70


def test_the_hardest_of_several_attempts_is_kept(corpus: Path) -> None:
    def birds(seed: int, attempts: int) -> Clusters:
        write_params(corpus, {"base.seed": seed, "cluster.attempts": attempts, "cluster.iterations": 1})
        judge.main()
        main()
        return Clusters.read(DATA, "birds", 0, pairs=70)

    vectors = VectorStore.open(Path("data/vectors/planted")).of("birds").of_pairs(pair_parts(PAIRS, "birds", "train"))
    each = [birds(seed, 1).assignment for seed in (1, 2, 3)]
    assert "attempts" not in Provenance.read(DATA, "cluster").parameters
    values = [objective(vectors, assignment) for assignment in each]
    assert len(set(values)) > 1
    np.testing.assert_array_equal(birds(1, 3).assignment, each[int(np.argmax(values))])
    assert Provenance.read(DATA, "cluster").parameters["attempts"] == 3


def test_negatives_made_from_other_pairs_are_refused(corpus: Path) -> None:
    write_pairs("mammals", topic_pairs(40, seed=2))
    message = "data/negatives: the pairs it was made from have changed; run the stage 'filter' again"
    with pytest.raises(InputError, match=message):
        main()
