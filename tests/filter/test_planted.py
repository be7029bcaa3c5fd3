"""The filter's scores and duplicate classes find planted false negatives."""

import numpy as np

from tests.filter.planted import KINDS, compare, judge, plant

RECALL_BAR = 0.99


def test_nearly_all_false_negatives_of_each_kind_are_found() -> None:
    planted = plant(groups=1000, topics=5, seed=1)
    found, cells, wrong = compare(planted, judge(planted))
    assert all(cells[kind] == 400 for kind in KINDS)
    assert all(found[kind] / cells[kind] >= RECALL_BAR for kind in KINDS)
    assert wrong["identity"] == 0
    assert wrong["score"] < sum(found.values()) / 4


def test_the_same_seed_plants_the_same_pairs() -> None:
    first, second = (plant(groups=20, topics=2, seed=4) for _ in range(2))
    assert (first.queries, first.documents) == (second.queries, second.documents)
    np.testing.assert_array_equal(first.document_vectors, second.document_vectors)
