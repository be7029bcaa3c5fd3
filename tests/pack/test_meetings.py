"""Which pairs meet again in later epochs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pack.meetings import shares_met_before
from stages.pack.plan import Batch


def batches(*epochs: list[list[int]], domain: str = "birds") -> list[Batch]:
    return [
        Batch(epoch=epoch, domain=domain, draw=0, rows=np.array(rows)) for epoch, of in enumerate(epochs) for rows in of
    ]


def test_pairs_in_repeated_batches_all_meet_again_and_in_mixed_batches_some_do() -> None:
    planned = batches([[0, 1, 2], [3, 4, 5]], [[2, 1, 0], [5, 3, 4]], [[0, 1, 3], [2, 4, 5]])
    assert shares_met_before(planned, {"birds": 6}, 3) == [0, 1, pytest.approx(1 / 3, abs=1e-6)]


def test_pairs_of_different_domains_and_pairs_left_over_before_have_not_met() -> None:
    planned = [*batches([[0, 1]], [[2, 3]]), *batches([[2, 3]], [[0, 1]], domain="fish")]
    assert shares_met_before(planned, {"birds": 4, "fish": 4}, 2) == [0, 0]


@given(st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_shares_equal_a_count_of_all_meetings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epochs = [rng.permutation(12).reshape(4, 3).tolist() for _ in range(3)]
    met: set[frozenset[int]] = set()
    expected = []
    for epoch in epochs:
        meetings = {frozenset((first, second)) for rows in epoch for first in rows for second in rows if first < second}
        expected.append(pytest.approx(len(meetings & met) / 12, abs=1e-6))
        met |= meetings
    assert shares_met_before(batches(*epochs), {"birds": 12}, 3) == expected
