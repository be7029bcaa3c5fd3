"""``python -m stages filter``: scores, thresholds, duplicate classes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from batchwright.core import grid
from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.formats.negatives import INCONSISTENT, KEPT, Negatives
from batchwright.formats.pairs import read_pairs
from batchwright.formats.vectors import Provenance
from stages.filter.stage import main
from tests.helpers import plant_vectors, planted_vectors, run_stage, topic_pairs, tree, write_pairs, write_params

DATA = Path("data/negatives")


@pytest.fixture
def corpus(workspace: Path) -> Path:
    pairs = topic_pairs(20)
    pairs += [
        (pairs[0][0].upper(), "topic1 another answer"),
        ("topic2 another question", pairs[1][1].replace(" ", "  ")),
    ]
    write_pairs("birds", pairs)
    write_pairs("fish", topic_pairs(10, seed=1))
    plant_vectors()
    return workspace


def test_scores_are_inner_products_and_thresholds_are_a_margin_below(corpus: Path) -> None:
    assert main().startswith("32 pairs of 2 domains scored by 'planted', ")
    pairs = read_pairs(Path("data/pairs"), "birds", "train").to_pylist()
    negatives = Negatives.read(DATA, "birds", pairs=22)
    for row, pair in enumerate(pairs):
        query, document = planted_vectors([pair["query"], pair["document"]]).tolist()
        score = sum(left * right for left, right in zip(query, document, strict=True))
        assert negatives.scores[row] == score
        assert negatives.thresholds[row] == score - 0.125


def test_the_summary_counts_duplicate_classes_and_the_provenance_names_the_surrogate(corpus: Path) -> None:
    main()
    negatives = Negatives.read(DATA, "birds", pairs=22)
    summary = read_json(Path("results/filter.json"), made_by="filter")["birds"]
    assert (summary["pairs"], summary["queries"], summary["documents"]) == (22, 21, 21)
    assert (summary["largest_query_class"], summary["largest_document_class"]) == (2, 2)
    assert (summary["dropped"], summary["mined"], summary["mined_missing"]) == (0, 0, 0)
    assert summary["mean_score"] == pytest.approx(negatives.scores.mean(), abs=1e-6)
    source = Provenance.read(DATA, "filter")
    assert (source.vectors, source.weights) == ("planted", "weights of planted")


def test_dropped_pairs_and_mined_negatives_are_counted(corpus: Path) -> None:
    write_params(corpus, {"filter.consistency": 2, "filter.mine": {"count": 3, "depth": 6}})
    summary_line = main()
    negatives = Negatives.read(DATA, "birds", pairs=22)
    summary = read_json(Path("results/filter.json"), made_by="filter")
    dropped = int((~negatives.kept).sum())
    assert 0 < dropped < 22
    assert set(negatives.dropped.tolist()) == {KEPT, INCONSISTENT}
    assert summary["birds"]["dropped"] == dropped
    assert summary_line.endswith(f"{dropped + summary['fish']['dropped']} dropped")
    assert negatives.mined.shape == (22, 3)
    assert summary["birds"]["mined"] == (negatives.mined >= 0).sum() > 0
    assert summary["birds"]["mined"] + summary["birds"]["mined_missing"] == 66


@pytest.mark.parametrize("changes", [{}, {"filter.consistency": 2, "filter.mine": {"count": 2, "depth": 5}}])
def test_two_runs_give_the_same_bytes_and_a_new_domain_changes_no_other(
    corpus: Path, changes: dict[str, object]
) -> None:
    write_params(corpus, changes)
    main()
    first = tree(DATA)
    write_pairs("mammals", topic_pairs(40, seed=2))
    plant_vectors()
    main()
    second = tree(DATA)
    assert second.pop("provenance.json") != first.pop("provenance.json")
    assert {name: content for name, content in second.items() if "mammals" not in name} == first


@pytest.mark.parametrize("changes", [{}, {"filter.consistency": 2, "filter.mine": {"count": 2, "depth": 5}}])
def test_a_domain_may_have_no_training_pairs_at_all(corpus: Path, changes: dict[str, object]) -> None:
    write_params(corpus, changes)
    write_pairs("mammals", topic_pairs(3, seed=2), split="test")
    plant_vectors()
    main()
    assert read_json(Path("results/filter.json"), made_by="filter")["mammals"]["pairs"] == 0


def test_a_domain_may_have_one_pair(workspace: Path) -> None:
    write_params(workspace, {"filter.consistency": 1, "filter.mine": {"count": 2, "depth": 5}})
    write_pairs("birds", [("topic0 why", "topic1 so")])
    plant_vectors()
    main()
    negatives = Negatives.read(DATA, "birds", pairs=1)
    assert negatives.kept.tolist() == [True]
    assert negatives.mined.tolist() == [[-1, -1]]


def zeros(texts: list[str]) -> NDArray[np.float16]:
    return np.zeros((len(texts), 8), np.float16)


def at_random(texts: list[str]) -> NDArray[np.float16]:
    return grid.unit(np.random.default_rng(0).normal(size=(len(texts), 8))).astype(np.float16)


@pytest.mark.parametrize("vectors_of", [zeros, at_random])
def test_vectors_that_know_nothing_mask_nothing(
    workspace: Path, vectors_of: Callable[[list[str]], NDArray[np.float16]], capsys: pytest.CaptureFixture[str]
) -> None:
    write_params(workspace, {"filter.likeness": "auto", "filter.margin": None, "filter.drop_doubtful": True})
    write_pairs("birds", topic_pairs(200))
    plant_vectors(vectors_of=vectors_of)
    main()
    negatives = Negatives.read(DATA, "birds", pairs=200)
    everything = np.ones((200, 200), np.float32)
    assert not negatives.false(slice(None), everything, everything).any()
    assert negatives.kept.all() == (vectors_of is zeros)
    said = "likeness: auto sets no limit in 'birds', and nothing is masked by score: by 'planted', the own documents of"
    assert capsys.readouterr().err.startswith(f"filter: warning: {said} ")
    write_params(workspace, {"filter.margin": 0.1})
    main()
    said = "what is masked by score in 'birds' is chance: by 'planted', the own documents of"
    assert capsys.readouterr().err.startswith(f"filter: warning: {said} ")


def test_a_domain_has_its_own_likeness_and_others_say_why_auto_found_none(corpus: Path) -> None:
    write_params(corpus, {"filter.likeness": {"birds": 0.75}, "filter.margin": None})
    said = main().splitlines()[1:]
    summary = read_json(Path("results/filter.json"), made_by="filter")
    assert (summary["birds"]["likeness"], summary["fish"]["likeness"]) == (0.75, None)
    because = summary["fish"]["no_limit_because"]
    assert said == [f"  no limit found in 'fish', so nothing is masked by score: {because}"]
    assert because == "only 45 pairs of pairs could be compared"
    assert "no_limit_because" not in summary["birds"]
    write_params(corpus, {"filter.likeness": {"bird": 0.75}})
    with pytest.raises(InputError, match="unknown domain 'bird'; did you mean 'birds'"):
        main()


def test_pairs_newer_than_the_vectors_are_refused(corpus: Path) -> None:
    write_pairs("fish", topic_pairs(11, seed=5))
    ended = run_stage("filter", cwd=corpus)
    assert ended.returncode == 1
    assert ended.stderr.startswith("filter: error: data/vectors/planted/fish: no vector for the query 'topic")
    assert ended.stderr.endswith("run the stage 'embed' again\n")
    assert not DATA.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filter.factor": -0.1, "filter.margin": None}, r"parameter 'filter\.factor': .*greater than or equal to 0"),
        ({"filter.margin": None}, r"parameter 'filter': give one of margin, factor and threshold"),
        ({"filter.factor": 0.1}, r"parameter 'filter': give one of margin, factor and threshold"),
        ({"filter.near_duplicates": 0.5}, r"parameter 'filter\.near_duplicates': .*greater than or equal to 0\.7"),
        (
            {"filter.mine": {"count": 5, "depth": 4}},
            r"parameter 'filter\.mine': 5 negatives cannot come from ranks 1 to 4",
        ),
        ({"filter.margin": 5}, r"parameter 'filter\.margin': .*less than or equal to 2 \(found 5\)"),
        (
            {"filter.likeness": 80},
            r"parameter 'filter\.likeness': .*less than or equal to 2, or 'auto', or a valid dictionary \(found 80\)$",
        ),
        (
            {"filter.likeness": {"fish": 80}},
            r"parameter 'filter\.likeness': .*less than or equal to 2, or 'auto' \(found 80\)$",
        ),
        ({"filter.margin": None, "filter.threshold": 70}, r"parameter 'filter\.threshold': .*less than or equal to 2"),
        ({"filter.consistency": 0}, r"parameter 'filter\.consistency': .*greater than 0"),
        ({"filter.marign": 1}, r"unknown parameter 'filter\.marign'; did you mean 'margin'\?"),
    ],
)
def test_wrong_parameters_are_explained(corpus: Path, changes: dict[str, object], message: str) -> None:
    write_params(corpus, changes)
    with pytest.raises(InputError, match=message):
        main()
    assert not DATA.exists()
