"""The search on landscapes whose best settings are known."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.tune.search import LONGER, SHORT, SOFTER, UNITS, Chosen, Scores, Trial, search

QUERIES = 200
EVERY = 40
START = (0.05, 0.02)


class Landscape:
    """Scores that fall with the distance, in octaves, from the best temperature of a loss and from the best rate.

    InfoNCE's temperature is ``SOFTER`` times as high. ``better`` gains, ``gain`` is what contextual batches add, and
    ``noise`` what differs from query to query between the two kinds.
    """

    def __init__(
        self, temperature: float, rate: float, gain: float = 0.0, noise: float = 0.0, better: str = "domain"
    ) -> None:
        self.temperatures, self.rate = {"domain": temperature, "batch": temperature * SOFTER}, rate
        self.gain, self.noise, self.better = gain, noise, better
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
        mean += self.gain * (trial.batches == "contextual") + 0.02 * (trial.negatives_stand_for == self.better)
        return dict(zip(map(str, range(QUERIES)), mean + self.noise * (drawn - drawn.mean()), strict=True))


def found(landscape: Landscape, start: tuple[float, float] = START) -> Chosen:
    return search(*start, EVERY, landscape)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.03, 0.12), st.floats(0.01, 0.2), st.sampled_from(["batch", "domain"]))
def test_loss_temperature_and_rate_are_found(temperature: float, rate: float, better: str) -> None:
    """To the two digits that values have: at most .14 octaves after two roundings, .07 after one."""
    landscape = Landscape(temperature, rate, better=better)
    settled = found(landscape).settings
    assert settled.negatives_stand_for == better
    best = landscape.temperatures[better] / SHORT["temperature"]
    assert abs(math.log2(settled.temperature / best)) < 0.15
    assert abs(math.log2(settled.learning_rate * SHORT["learning_rate"] / rate)) < 0.1


@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 2), st.floats(1e-6, 10), st.floats(0.001, 2), st.floats(1e-6, 10))
def test_all_trials_fit_into_the_budget(start: float, rate: float, best: float, best_rate: float) -> None:
    landscape = Landscape(best, best_rate)
    chosen = found(landscape, (start, rate))
    assert landscape.cost <= UNITS / EVERY + 1e-9
    assert [(tried.trial, tried.every) for tried in chosen.tried] == landscape.asked
    assert {tried.every for tried in chosen.tried} == {EVERY, EVERY // LONGER}


@pytest.mark.parametrize(
    ("gain", "noise", "batches"),
    [(0.05, 0.1, "contextual"), (-0.05, 0.1, "random"), (-0.003, 0.1, "contextual"), (0, 0, "contextual")],
)
def test_random_batches_are_chosen_if_they_gain_more_than_two_errors(gain: float, noise: float, batches: str) -> None:
    chosen = found(Landscape(0.05, 0.02, gain, noise))
    assert chosen.settings.batches == batches
    assert (chosen.gain.mean < -2 * chosen.gain.error) == (batches == "random")
    assert chosen.gain.mean == pytest.approx(gain)


def test_trials_that_diverge_are_the_worst() -> None:
    landscape = Landscape(0.05, 0.08)

    def train(trials: Sequence[Trial], every: int) -> list[Scores]:
        scored = landscape(trials, every)
        return [scored[place] if trial.learning_rate <= 0.1 else {} for place, trial in enumerate(trials)]

    chosen = search(*START, EVERY, train)
    assert chosen.settings.learning_rate == pytest.approx(START[1], rel=0.05)
    assert min(tried.ndcg for tried in chosen.tried) == -1
