"""The search on landscapes whose best settings are known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.tune.search import FALL, MOST, SOFTER, TRUST, Chosen, Scores, Trial, search

QUERIES = 200
EVERY = 40
START = (0.05, 0.02)


class Landscape:
    """Scores that fall with the distance, in octaves, from the best temperature of a loss and from the best rate.

    InfoNCE's temperature is ``SOFTER`` times as high. ``better`` is what InfoNCE adds, ``gain`` what contextual batches
    add, and ``noise`` what differs from query to query between trials that differ in them.
    """

    def __init__(
        self, temperature: float, rate: float, gain: float = 0.0, noise: float = 0.0, better: float = -0.02
    ) -> None:
        self.temperatures, self.rate = {"domain": temperature, "batch": temperature * SOFTER}, rate
        self.gain, self.noise, self.better = gain, noise, better
        self.asked: list[Trial] = []

    def __call__(self, trial: Trial) -> Scores:
        self.asked.append(trial)
        off = math.log2(trial.temperature / self.temperatures[trial.negatives_stand_for])
        mean = 0.6 - 0.02 * off**2 - 0.02 * math.log2(trial.learning_rate / self.rate) ** 2
        kinds = [trial.batches == "random", trial.negatives_stand_for == "batch"]
        drawn = np.random.default_rng(kinds).standard_normal(QUERIES)
        mean += self.gain * (trial.batches == "contextual") + self.better * (trial.negatives_stand_for == "batch")
        return dict(zip(map(str, range(QUERIES)), mean + self.noise * (drawn - drawn.mean()), strict=True))


def found(landscape: Landscape, start: tuple[float, float] = START) -> Chosen:
    return search(*start, EVERY, landscape)


def octaves(value: float, other: float) -> float:
    return math.log2(value / other)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.02, 0.12), st.floats(0.01, 0.2))
def test_the_best_rate_of_a_longer_training_is_chosen_and_half_of_the_way_to_the_best_temperature(
    temperature: float, rate: float
) -> None:
    """To the two digits that values have: at most .14 octaves after two roundings, .07 after one."""
    settled = found(Landscape(temperature, rate)).settings
    assert settled.negatives_stand_for == "domain"
    assert abs(octaves(settled.temperature, START[0]) - TRUST * octaves(temperature, START[0])) < 0.08
    assert abs(octaves(settled.learning_rate, rate / EVERY**FALL)) < 0.15


@pytest.mark.parametrize(
    ("better", "noise", "loss"),
    [(0.05, 0.1, "batch"), (0.005, 0.1, "domain"), (0.005, 0.01, "batch"), (0, 0, "domain"), (-0.05, 0.1, "domain")],
)
def test_another_loss_is_chosen_if_it_gains_more_than_two_errors(better: float, noise: float, loss: str) -> None:
    settled = found(Landscape(0.05, 0.08, noise=noise, better=better)).settings
    assert settled.negatives_stand_for == loss
    assert settled.temperature == pytest.approx({"batch": 0.05 * SOFTER, "domain": 0.05}[loss])


@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 2), st.floats(1e-6, 10), st.floats(0.001, 2), st.floats(1e-6, 10))
def test_all_trials_fit_into_the_budget_and_none_is_made_twice(
    start: float, rate: float, best: float, best_rate: float
) -> None:
    landscape = Landscape(best, best_rate)
    chosen = found(landscape, (start, rate))
    assert [tried.trial for tried in chosen.tried] == landscape.asked
    assert len(landscape.asked) == len(set(landscape.asked)) <= MOST


@pytest.mark.parametrize(
    ("gain", "noise", "batches"),
    [(0.05, 0.1, "contextual"), (-0.05, 0.1, "random"), (-0.003, 0.1, "contextual"), (0, 0, "contextual")],
)
def test_random_batches_are_chosen_if_they_gain_more_than_two_errors(gain: float, noise: float, batches: str) -> None:
    chosen = found(Landscape(0.05, 0.02, gain, noise))
    assert chosen.settings.batches == batches
    assert (chosen.gain.mean < -2 * chosen.gain.error) == (batches == "random")
    assert chosen.gain.mean == pytest.approx(gain)


def test_gains_that_may_be_chance_move_the_rate_by_half_a_step_at_most() -> None:
    def train(trial: Trial) -> Scores:
        drawn = np.random.default_rng(int(trial.learning_rate * 1e6)).standard_normal(QUERIES)
        mean = 0.6 + 0.002 * math.log2(trial.learning_rate)
        return dict(zip(map(str, range(QUERIES)), mean + 0.1 * (drawn - drawn.mean()), strict=True))

    assert abs(octaves(search(*START, EVERY, train).settings.learning_rate, START[1])) <= 1.05


def test_trials_that_diverge_are_the_worst() -> None:
    landscape = Landscape(0.05, 0.08)

    def train(trial: Trial) -> Scores:
        scores = landscape(trial)
        return scores if trial.learning_rate <= 0.1 else {}

    chosen = search(*START, EVERY, train)
    assert chosen.settings.learning_rate == pytest.approx(START[1], rel=0.05)
    assert min(tried.ndcg for tried in chosen.tried) == -1
