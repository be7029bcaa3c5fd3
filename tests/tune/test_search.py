"""The search on landscapes whose best settings are known."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.tune.search import SHORT, UNITS, Chosen, Scores, Trial, search

QUERIES = 200
EVERY = 40
START = (0.05, 0.02)


class Landscape:
    """Scores that fall with the distance, in octaves, from the best temperature of a loss and from the best rate.

    ``gain`` is what contextual batches add, and ``noise`` what differs from query to query between the two kinds.
    """

    def __init__(self, temperatures: Mapping[str, float], rate: float, gain: float = 0.0, noise: float = 0.0) -> None:
        self.temperatures, self.rate, self.gain, self.noise = temperatures, rate, gain, noise
        self.cost = 0.0
        self.asked: list[tuple[Trial, int]] = []

    def __call__(self, trials: Sequence[Trial], every: int) -> list[Scores]:
        self.cost += len(trials) / every
        self.asked += [(trial, every) for trial in trials]
        return [self._scores(trial) for trial in trials]

    def _scores(self, trial: Trial) -> Scores:
        off = math.log2(trial.temperature / self.temperatures[trial.negatives_stand_for])
        mean = 0.6 - 0.02 * off**2 - 0.02 * math.log2(trial.learning_rate / self.rate) ** 2
        drawn = np.random.default_rng(trial.batches == "random").standard_normal(QUERIES)
        mean += self.gain * (trial.batches == "contextual")
        return dict(zip(map(str, range(QUERIES)), mean + self.noise * (drawn - drawn.mean()), strict=True))


def found(landscape: Landscape, start: tuple[float, float] = START) -> Chosen:
    return search(*start, EVERY, landscape)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.03, 0.12), st.floats(0.01, 0.2), st.sampled_from(["batch", "domain"]))
def test_temperature_and_rate_are_found_to_half_a_step(temperature: float, rate: float, better: str) -> None:
    worse = temperature * 1.4
    landscape = Landscape({better: temperature, ({"batch", "domain"} - {better}).pop(): worse}, rate)
    settled = found(landscape).settings
    assert (
        abs(math.log2(settled.temperature * SHORT["temperature"] / landscape.temperatures[settled.negatives_stand_for]))
        < 0.3
    )
    assert abs(math.log2(settled.learning_rate * SHORT["learning_rate"] / rate)) < 0.6


@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 2), st.floats(1e-6, 10), st.floats(0.001, 2), st.floats(1e-6, 10))
def test_all_trials_fit_into_the_budget(start: float, rate: float, best: float, best_rate: float) -> None:
    landscape = Landscape({"batch": best, "domain": best / 2}, best_rate)
    chosen = found(landscape, (start, rate))
    assert landscape.cost <= UNITS / EVERY + 1e-9
    assert [(tried.trial, tried.every) for tried in chosen.tried] == landscape.asked


@pytest.mark.parametrize(
    ("gain", "noise", "batches"), [(0.05, 0.1, "contextual"), (-0.05, 0.1, "random"), (0.003, 0.1, "random")]
)
def test_contextual_batches_are_chosen_if_they_gain_more_than_an_error(gain: float, noise: float, batches: str) -> None:
    chosen = found(Landscape({"batch": 0.05, "domain": 0.05}, 0.02, gain, noise))
    assert chosen.settings.batches == batches
    assert (chosen.gain.mean > chosen.gain.error) == (batches == "contextual")


def test_trials_that_diverge_are_the_worst() -> None:
    landscape = Landscape({"batch": 0.05, "domain": 0.05}, 0.08)

    def train(trials: Sequence[Trial], every: int) -> list[Scores]:
        scored = landscape(trials, every)
        return [scored[place] if trial.learning_rate <= 0.04 else {} for place, trial in enumerate(trials)]

    chosen = search(*START, EVERY, train)
    assert chosen.settings.learning_rate == pytest.approx(0.04 / SHORT["learning_rate"], rel=0.05)
    assert min(tried.ndcg for tried in chosen.tried) == -1
