"""Doubtful pairs: their own document scores no higher than documents drawn at random."""

from pathlib import Path

import numpy as np
import pytest

from batchwright.core.files import read_json
from batchwright.core.grid import STEP
from batchwright.formats.negatives import DOUBTFUL, Negatives
from batchwright.formats.vectors import PairVectors
from stages.filter import stage
from stages.filter.rules import doubtful
from tests.helpers import plant_vectors, topic_pairs, write_pairs, write_params


def test_pairs_with_the_wrong_document_are_doubtful() -> None:
    generator = np.random.default_rng(1)
    documents = generator.normal(size=(300, 32))
    queries = documents + 0.3 * generator.normal(size=documents.shape)
    wrong = np.arange(0, 300, 30)
    queries[wrong] = -documents[wrong]
    vectors = PairVectors(
        vectors=np.concatenate([queries, documents]).astype(np.float16), rows=np.arange(600).reshape(2, 300)
    )
    found = doubtful(vectors, vectors.scores(), np.arange(300, dtype=np.int32), np.random.default_rng(0))
    assert np.flatnonzero(found).tolist() == wrong.tolist()


def test_duplicates_of_a_document_do_not_make_it_doubtful() -> None:
    vectors = PairVectors(vectors=np.ones((40, 4), np.float16), rows=np.arange(40).reshape(2, 20))
    same = np.zeros(20, np.int32)
    assert not doubtful(vectors, vectors.scores(), same, np.random.default_rng(0)).any()


@pytest.mark.parametrize(("above", "all_are"), [(0, True), (STEP**2, False)])
def test_a_tie_is_as_high_and_anything_less_is_not(above: float, all_are: bool) -> None:
    vectors = PairVectors(vectors=np.full((40, 4), 0.5, np.float16), rows=np.arange(40).reshape(2, 20))
    scores = vectors.scores() + np.float32(above)
    found = doubtful(vectors, scores, np.arange(20, dtype=np.int32), np.random.default_rng(0))
    assert found.all() if all_are else not found.any()


@pytest.mark.parametrize("drop", [False, True])
def test_they_are_counted_and_dropped_on_request(workspace: Path, drop: bool) -> None:
    pairs = [*topic_pairs(40), ("topic0 odd one", "topic11 another thing"), ("topic1 odd", "topic10 other")]
    write_params(workspace, {"filter.drop_doubtful": drop})
    write_pairs("birds", pairs)
    plant_vectors()
    said = stage.main()
    summary = read_json(Path("results/filter.json"), made_by="filter")["birds"]
    negatives = Negatives.read(Path("data/negatives"), "birds", pairs=42)
    assert summary["doubtful"] >= 2
    assert f"{summary['doubtful']} doubtful" in said
    assert np.count_nonzero(negatives.dropped == DOUBTFUL) == np.count_nonzero(~negatives.kept)
    assert np.count_nonzero(~negatives.kept) == summary["dropped"] == (summary["doubtful"] if drop else 0)
