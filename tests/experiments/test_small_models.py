"""What benchmarks share."""

import pytest

from experiments.common.small_models import stretch


@pytest.mark.parametrize(
    ("schedule", "epochs", "expected"),
    [([0, 1], 4, [0, 0, 1, 1]), ([0, 1], 3, [0, 0, 1]), ([0.5], 2, [0.5, 0.5]), ([0, 0.25, 0.5, 1], 2, [0, 0.5])],
)
def test_a_schedule_is_stretched_or_thinned_to_the_epochs(schedule, epochs, expected):
    assert stretch(schedule, epochs) == expected
