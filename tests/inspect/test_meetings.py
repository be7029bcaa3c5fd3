"""Which pairs meet again in later epochs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.formats.shards.batch import met_before


def shares(*epochs: list[list[int]], pairs: int) -> list[list[float]]:
    """The shares of each epoch's batches."""
    planned = [(epoch, np.array(rows)) for epoch, batches in enumerate(epochs) for rows in batches]
    found = iter(met_before(planned, pairs))
    return [[next(found) for _ in batches] for batches in epochs]


def test_pairs_in_repeated_batches_all_meet_again_and_in_mixed_batches_some_do() -> None:
    third = pytest.approx(1 / 3)
    epochs = [[0, 1, 2], [3, 4, 5]], [[2, 1, 0], [5, 3, 4]], [[0, 1, 3], [2, 4, 5]]
    assert shares(*epochs, pairs=6) == [[0, 0], [1, 1], [third, third]]


def test_pairs_left_over_before_have_not_met() -> None:
    assert shares([[0, 1]], [[2, 3]], pairs=4) == [[0], [0]]


@given(st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_shares_equal_a_count_of_all_meetings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epochs = [rng.permutation(12).reshape(4, 3).tolist() for _ in range(3)]
    met: set[frozenset[int]] = set()
    for epoch, found in zip(epochs, shares(*epochs, pairs=12), strict=True):
        meetings = {frozenset((first, second)) for rows in epoch for first in rows for second in rows if first < second}
        assert np.mean(found) == pytest.approx(len(meetings & met) / 12)
        met |= meetings
