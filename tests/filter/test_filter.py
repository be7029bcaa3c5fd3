"""``python -m stages.filter``: scores, thresholds, duplicate classes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import InputError
from formats.negatives import Negatives
from formats.pairs import read_pairs
from formats.results import read_json
from formats.source import Source
from stages.filter.__main__ import main
from stages.filter.classes import duplicate_classes
from tests.helpers import plant_vectors, planted_vectors, run_stage, topic_pairs, tree, write_pairs, write_params

DATA = Path("data/negatives")


def normalised(text: str) -> str:
    return " ".join(text.casefold().split())


@given(st.lists(st.text(alphabet="asSß \t\n\u00a0", max_size=5), max_size=12))
def test_classes_are_equal_where_texts_are_equal_but_for_case_and_white_space(texts: list[str]) -> None:
    classes = duplicate_classes(texts)
    assert classes.shape == (len(texts),)
    for left, of_left in zip(texts, classes, strict=True):
        for right, of_right in zip(texts, classes, strict=True):
            assert (of_left == of_right) == (normalised(left) == normalised(right))


def test_punctuation_and_word_order_make_another_text() -> None:
    assert len(set(duplicate_classes(["a b", "b a", "a, b", "ab"]).tolist())) == 4


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


def test_scores_are_inner_products_and_thresholds_lie_a_margin_below(corpus: Path) -> None:
    assert main() == "32 pairs of 2 domains scored by 'planted', margin 0.125"
    pairs = read_pairs(Path("data/pairs"), "birds", "train").to_pylist()
    negatives = Negatives.read(DATA, "birds", pairs=22)
    for row, pair in enumerate(pairs):
        query, document = planted_vectors([pair["query"], pair["document"]]).tolist()
        score = sum(left * right for left, right in zip(query, document, strict=True))
        assert negatives.scores[row] == score
        assert negatives.thresholds[row] == score - 0.125


def test_the_summary_counts_what_differs_and_names_the_surrogate(corpus: Path) -> None:
    main()
    negatives = Negatives.read(DATA, "birds", pairs=22)
    summary = read_json(Path("results/filter.json"), made_by="filter")["birds"]
    assert (summary["pairs"], summary["queries"], summary["documents"]) == (22, 21, 21)
    assert summary["mean_score"] == pytest.approx(negatives.scores.mean(), abs=1e-6)
    source = Source.read(DATA, "filter")
    assert (source.vectors, source.weights) == ("planted", "weights of planted")


def test_two_runs_give_the_same_bytes_and_a_new_domain_changes_no_other(corpus: Path) -> None:
    main()
    first = tree(DATA)
    write_pairs("mammals", topic_pairs(40, seed=2))
    plant_vectors()
    main()
    second = tree(DATA)
    assert second.pop("source.json") != first.pop("source.json")
    assert {name: content for name, content in second.items() if "mammals" not in name} == first


def test_a_domain_may_have_no_training_pairs_at_all(corpus: Path) -> None:
    write_pairs("mammals", topic_pairs(3, seed=2), split="test")
    plant_vectors()
    main()
    assert read_json(Path("results/filter.json"), made_by="filter")["mammals"]["pairs"] == 0


def test_pairs_newer_than_the_vectors_are_refused(corpus: Path) -> None:
    write_pairs("fish", topic_pairs(11, seed=5))
    ended = run_stage("filter", cwd=corpus)
    assert ended.returncode == 1
    assert ended.stderr.startswith("filter: error: data/vectors/planted/fish: no vector for the query 'topic")
    assert ended.stderr.endswith("run the stage 'embed' again\n")
    assert not DATA.exists()


def test_a_negative_margin_is_refused(corpus: Path) -> None:
    write_params(corpus, {"filter.margin": -0.1})
    with pytest.raises(InputError, match=r"parameter 'filter\.margin': .*greater than or equal to 0"):
        main()
