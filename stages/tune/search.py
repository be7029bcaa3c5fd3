"""The search for the settings of a run by short trials.

It begins at the run's own settings with contextual batches and our loss, which are a good choice for most data, and
leaves them only as far as trials can tell. What they tell was seen on static models of eleven sets;
``experiments.rivals.tuned`` tries it on thirteen. The best rate of a trial is higher than that of the whole training,
by a factor that depends on its length and, which nobody knows before, on the data; far above it, the scores of trials
hardly fall. The best temperature is about the same, and a matter of chance within a factor of two. Hard batches pay
late.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from batchwright.formats.runs import StandFor
from stages.scoring.paired import Estimate, by_query, difference

CONTEXTUAL, RANDOM = "contextual", "random"
Field = Literal["temperature", "learning_rate"]
STEPS: dict[Field, float] = {"temperature": 2.0, "learning_rate": 4.0}
"""Factors between neighbours: so large that three of them differ by more than chance."""
FALL = 1 / 3
"""The best rate falls with about this power of the number of steps."""
TRUST = 0.5
"""How far towards the temperature that is best in trials the run's own one moves, on a logarithmic scale."""
CLIMBS, CHANGES = 1.5, 2.0
"""By how many errors another rate or temperature must be ahead, and by how many another loss or other batches."""
NEAR = 0.5
"""How far the best value may be from the last that was clearly ahead, in steps."""
SOFTER = 1.5
"""How many times as high the best temperature of InfoNCE is as that of ``negatives_stand_for: domain``."""
RATES, TEMPERATURES = 4, 3
"""How many trials there are at most, for the rate and then for the temperature."""
MOST = RATES + TEMPERATURES + 2
"""How many trials there are at most; all are of one length."""

Scores = Mapping[str, float]
"""nDCG@10 of each dev query; nothing if training diverged."""


class Trial(NamedTuple):
    """What a trial trains with; the other settings are the run's own."""

    batches: str
    negatives_stand_for: StandFor
    temperature: float
    learning_rate: float


class Tried(NamedTuple):
    """A trial, and what came of it."""

    trial: Trial
    scores: Scores

    @property
    def ndcg(self) -> float:
        """The mean over the dev queries; -1 if training diverged."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else -1.0


class Chosen(NamedTuple):
    """The settings for the whole training, what contextual batches ``gain`` over random ones in trials on every
    ``every``-th batch of it, and all trials in their order."""

    settings: Trial
    gain: Estimate
    every: int
    tried: list[Tried]


Train = Callable[[Trial], Scores]


def search(
    temperature: float, learning_rate: float, every: int, train: Train, *, keep_temperature: bool = False
) -> Chosen:
    """Search from a temperature and rate on; ``train`` trains a trial on every ``every``-th batch of the run.

    The same scores lead to the same choice: what is tried next depends on nothing else. With ``keep_temperature``, it
    stays as it is: one that follows from the number of documents is better than what trials can tell.
    """
    trials, shorter = _Trials(train), every**FALL
    first = Trial(CONTEXTUAL, "domain", temperature, _rounded(learning_rate * shorter))
    best = trials.climb(first, "learning_rate", RATES)
    rate = trials.peak(best, "learning_rate") / shorter
    own = temperature
    if not keep_temperature:
        best = trials.climb(best, "temperature", 1 + TEMPERATURES)
        own = _rounded(temperature * (trials.peak(best, "temperature") / temperature) ** TRUST)
    infonce = best._replace(negatives_stand_for="batch", temperature=_rounded(own * SOFTER))
    contextual = infonce if trials.ahead(infonce, best, CHANGES) else best
    random = contextual._replace(batches=RANDOM)
    settings = random if trials.ahead(random, contextual, CHANGES) else contextual
    if settings.negatives_stand_for == "domain":
        settings = settings._replace(temperature=own)
    gain = _gain(trials.tried[contextual], trials.tried[random])
    return Chosen(settings._replace(learning_rate=_rounded(rate)), gain, every, [*trials.tried.values()])


def _gain(ours: Tried, theirs: Tried) -> Estimate:
    if not (ours.scores and theirs.scores):  # one of them diverged, or both
        return Estimate(ours.ndcg - theirs.ndcg, 0.0, 1.0)
    return difference(*by_query([ours.scores, theirs.scores]))


class _Trials:
    """Trains each trial once."""

    def __init__(self, train: Train) -> None:
        self._train = train
        self.tried: dict[Trial, Tried] = {}

    def climb(self, trial: Trial, field: Field, most: int) -> Trial:
        """Go from ``trial`` along a field as long as it clearly gains, up or else down, in ``most`` trials."""
        self._try(trial)
        last = len(self.tried) - 1 + most
        for steps in (1, -1):
            while len(self.tried) < last and self.ahead(ahead := _moved(trial, field, steps), trial, CLIMBS):
                trial = ahead
        return trial

    def peak(self, trial: Trial, field: Field) -> float:
        """Return a field's best value in trials, given the one that was climbed to.

        It is where the parabola through that one and its neighbours is highest, on a logarithmic scale, but within
        ``NEAR`` steps: less a matter of chance than which of the three is best. Without both neighbours, that is taken.
        """
        around = [self.tried.get(_moved(trial, field, steps)) for steps in (-1, 1)]
        value: float = getattr(trial, field)
        if not all(tried and tried.scores for tried in around):
            return value
        low, high = (tried.ndcg for tried in around if tried)
        bend = 2 * self.tried[trial].ndcg - low - high
        steps = (high - low) / (2 * bend) if bend > 0 else math.copysign(NEAR, high - low)
        peak: float = value * STEPS[field] ** min(max(steps, -NEAR), NEAR)
        return peak

    def ahead(self, trial: Trial, other: Trial, errors: float) -> bool:
        """Whether a trial is ahead of another by more than so many errors."""
        gain = _gain(self._try(trial), self._try(other))
        return gain.mean > errors * gain.error

    def _try(self, trial: Trial) -> Tried:
        """Train a trial, unless it was."""
        if trial not in self.tried:
            self.tried[trial] = Tried(trial, self._train(trial))
        return self.tried[trial]


def _moved(trial: Trial, field: Field, steps: int) -> Trial:
    """Return a neighbour; steps are powers of two, so that ways up and down meet again."""
    value = getattr(trial, field) * STEPS[field] ** steps
    return trial._replace(temperature=value) if field == "temperature" else trial._replace(learning_rate=value)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
