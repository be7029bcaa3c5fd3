"""The search for the settings of a run by short trials.

What short trials tell, and what not, was seen on static models of four sets; ``experiments.rivals.tuned`` tries it on
nine. The best rate of a short trial is several times that of the whole training, and not by the same factor on all
sets; the best temperature is about that of the whole if a trial is a twelfth of it, not if it is a fiftieth. Hard
batches pay late: random ones that are ahead by little in a trial fall behind at the end.

So the rate is climbed in short trials, then the temperature in longer ones with contextual batches, and last the losses
and batches meet.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from batchwright.formats.runs import StandFor
from stages.scoring.paired import Estimate, by_query, difference

CONTEXTUAL, RANDOM = "contextual", "random"
Field = Literal["temperature", "learning_rate"]
STEPS: dict[Field, float] = {"temperature": 2.0, "learning_rate": 4.0}
"""Factors between neighbours: so large that three of them differ by more than chance."""
SHORT: dict[Field, float] = {"temperature": 2**0.125, "learning_rate": 2**1.5}
"""How many times as high the best values of a trial are: those of the temperature in long ones, of the rate in short
ones."""
SOFTER = 1.5
"""How many times as high the best temperature of InfoNCE is as that of ``negatives_stand_for: domain``."""
LONGER = 4
"""How many short trials a long one costs."""
RATES, TEMPERATURES, FINALS = 4, 4, 2
"""How many trials there are at most: short ones for the rate, long ones for temperature, then for loss and batches."""
MOST = RATES + TEMPERATURES + FINALS
UNITS = RATES + LONGER * (TEMPERATURES + FINALS)
"""What all trials cost at most, in short ones."""

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
    """Search from a temperature and rate on, with trials on every ``every``-th batch, and longer ones.

    Contextual batches are chosen unless random ones are ahead by more than two errors. The same scores lead to the same
    choice: what is tried next depends on nothing else.
    """
    short = _Trials(train, every)
    first = Trial(RANDOM, "batch", temperature, _rounded(learning_rate * SHORT["learning_rate"]))
    rate = short.peak(short.climb(first, "learning_rate", RATES), "learning_rate")
    long = _Trials(train, -(-every // LONGER))
    warmest = long.climb(Trial(CONTEXTUAL, "domain", temperature, rate), "temperature", TEMPERATURES)
    peak = long.peak(warmest, "temperature")
    infonce = Trial(CONTEXTUAL, "batch", _rounded(peak * SOFTER), rate)
    contextual = long.best([warmest, infonce])
    random = contextual._replace(batches=RANDOM)
    long.best([random])
    gain = _gain(long.tried[contextual], long.tried[random])
    settings = contextual if gain.mean >= -2 * gain.error else random
    if settings.negatives_stand_for == "domain":
        settings = settings._replace(temperature=peak)
    return Chosen(settings, gain, long.every, [*short.tried.values(), *long.tried.values()])


def _gain(ours: Tried, theirs: Tried) -> Estimate:
    if not (ours.scores and theirs.scores):  # one of them diverged, or both
        return Estimate(ours.ndcg - theirs.ndcg, 0.0, 1.0)
    return difference(*by_query([ours.scores, theirs.scores]))


class _Trials:
    """Trains each trial once, on every ``every``-th batch."""

    def __init__(self, train: Train, every: int) -> None:
        self._train, self.every = train, every
        self.tried: dict[Trial, Tried] = {}

    def climb(self, trial: Trial, field: Field, most: int) -> Trial:
        """Go from ``trial`` along a field as long as it gains, up or else down, in ``most`` trials."""
        self.best([trial])
        last = len(self.tried) - 1 + most
        for steps in (1, -1):
            while len(self.tried) < last and self.best([trial, ahead := _moved(trial, field, steps)]) == ahead:
                trial = ahead
        return trial

    def peak(self, trial: Trial, field: Field) -> float:
        """Return a field's best value for the whole training, given the best ``trial``.

        In trials it is where the parabola through that one and its neighbours is highest, on a logarithmic scale: less
        a matter of chance than which of the three is best; without both neighbours, that is taken.
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
            for trial, scores in zip(new, self._train(new, self.every), strict=True):
                self.tried[trial] = Tried(trial, self.every, scores)
        return max(trials, key=lambda trial: self.tried[trial].ndcg)


def _moved(trial: Trial, field: Field, steps: int) -> Trial:
    """Return a neighbour; steps are powers of two, so that ways up and down meet again."""
    value = getattr(trial, field) * STEPS[field] ** steps
    return trial._replace(temperature=value) if field == "temperature" else trial._replace(learning_rate=value)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
