"""The search for the settings of a run by short trials.

Short trials tell enough: on three sets, after a fiftieth of a training, the best temperature was about 1.7 times that
of the whole, and the best rate three times. So temperature and rate are climbed in such trials, with random batches.
Then contextual batches with both losses and random ones with the better of the two meet in trials of a twelfth.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from batchwright.formats.runs import StandFor
from stages.scoring.paired import Estimate, by_query, difference

CONTEXTUAL, RANDOM = "contextual", "random"
Field = Literal["temperature", "learning_rate"]
STEPS: dict[Field, float] = {"temperature": 2**0.5, "learning_rate": 2.0}
"""Factors between neighbours."""
SHORT: dict[Field, float] = {"temperature": 2**0.75, "learning_rate": 2**1.5}
"""How many times as high the best values of a short trial are."""
RATES, TEMPERATURES = 5, 3
"""How many trials a climb of rate or temperature takes at most, beside the one that it starts from."""
SHORT_TRIALS, FINALS = (1 + RATES + TEMPERATURES) + (1 + TEMPERATURES), 3
"""How many short trials there are at most, and how many long ones, which decide about batches."""
UNITS = 2 * SHORT_TRIALS
"""What all trials cost at most, in short ones: the long ones cost as much as all others, since what hard batches bring
shows late."""

Scores = Mapping[str, float]
"""nDCG@10 of each dev query; nothing if training diverged."""


class Trial(NamedTuple):
    """What a trial trains with; the other settings are the run's own."""

    batches: str
    negatives_stand_for: StandFor
    temperature: float
    learning_rate: float


class Tried(NamedTuple):
    """A trial on every ``every``-th batch, and what came of it."""

    trial: Trial
    every: int
    scores: Scores

    @property
    def ndcg(self) -> float:
        """The mean over the dev queries; -1 if training diverged."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else -1.0


class Chosen(NamedTuple):
    """The settings for the whole training, what contextual batches ``gain`` over random ones after one ``every``-th of
    it, and all trials in their order."""

    settings: Trial
    gain: Estimate
    every: int
    tried: list[Tried]


Train = Callable[[Sequence[Trial], int], Sequence[Scores]]
"""Trains trials on every so-manyth batch of the run."""


def search(temperature: float, learning_rate: float, every: int, train: Train) -> Chosen:
    """Search from a temperature and rate on, with trials on every ``every``-th batch.

    Contextual batches are chosen if they gain more than a standard error over random ones. The same scores lead to the
    same choice: what is tried next depends on nothing else.
    """
    trials = _Trials(train, every)
    plain = trials.climb(Trial(RANDOM, "batch", temperature, learning_rate), "learning_rate", RATES)
    rate = trials.peak(plain, "learning_rate")
    plain = trials.climb(plain, "temperature", TEMPERATURES)
    whole = _moved(plain._replace(negatives_stand_for="domain"), "temperature", -1)
    whole = trials.climb(whole, "temperature", TEMPERATURES)
    peaks = {trial.negatives_stand_for: trials.peak(trial, "temperature") for trial in (plain, whole)}
    random = trials.best([plain, whole])
    finals = [random, *(trial._replace(batches=CONTEXTUAL) for trial in (plain, whole))]
    longer = -(-FINALS * every // SHORT_TRIALS)
    long = [Tried(trial, longer, scores) for trial, scores in zip(finals, train(finals, longer), strict=True)]
    contextual = max(long[1:], key=lambda tried: tried.ndcg)
    gain = _gain(contextual, long[0])
    winner = contextual.trial if gain.mean > gain.error else random
    settings = winner._replace(temperature=peaks[winner.negatives_stand_for], learning_rate=rate)
    return Chosen(settings, gain, longer, [*trials.tried.values(), *long])


def _gain(ours: Tried, theirs: Tried) -> Estimate:
    if not (ours.scores and theirs.scores):  # one of them diverged, or both
        return Estimate(ours.ndcg - theirs.ndcg, 0.0, 1.0)
    return difference(*by_query([ours.scores, theirs.scores]))


class _Trials:
    """Trains each trial once."""

    def __init__(self, train: Train, every: int) -> None:
        self._train, self._every = train, every
        self.tried: dict[Trial, Tried] = {}

    def climb(self, trial: Trial, field: Field, most: int) -> Trial:
        """Go from ``trial`` along a field as long as it gains, up or else down, in ``most`` trials more."""
        self.best([trial])
        last = len(self.tried) + most
        for steps in (1, -1):
            while len(self.tried) < last and self.best([trial, ahead := _moved(trial, field, steps)]) == ahead:
                trial = ahead
        return trial

    def peak(self, trial: Trial, field: Field) -> float:
        """Return a field's best value for the whole training, given the best ``trial``.

        In short trials it is where the parabola through that one and its neighbours is highest, on a logarithmic scale:
        less a matter of chance than which of the three is best; without both neighbours, that is taken.
        """
        around = [self.tried.get(_moved(trial, field, steps)) for steps in (-1, 1)]
        value: float = getattr(trial, field)
        if not all(tried and tried.scores for tried in around):
            return _rounded(value / SHORT[field])
        low, high = (tried.ndcg for tried in around if tried)
        bend = 2 * self.tried[trial].ndcg - low - high
        steps = (high - low) / (2 * bend) if bend > 0 else 0.0
        return _rounded(value * STEPS[field] ** steps / SHORT[field])

    def best(self, trials: Sequence[Trial]) -> Trial:
        """Train those that were not yet, and return the best; the first of equals."""
        if new := [trial for trial in trials if trial not in self.tried]:
            for trial, scores in zip(new, self._train(new, self._every), strict=True):
                self.tried[trial] = Tried(trial, self._every, scores)
        return max(trials, key=lambda trial: self.tried[trial].ndcg)


def _moved(trial: Trial, field: Field, steps: int) -> Trial:
    """Return a neighbour; values are rounded, so that steps up and down meet again."""
    value = _rounded(getattr(trial, field) * STEPS[field] ** steps)
    return trial._replace(temperature=value) if field == "temperature" else trial._replace(learning_rate=value)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
