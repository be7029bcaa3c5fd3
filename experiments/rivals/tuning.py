"""The choice of temperature and learning rate, alike for all arms: the best of all neighbours in either."""

from collections.abc import Callable
from functools import cache

from experiments.rivals.encoders import RATES, Kind
from experiments.rivals.training import Settings

FIRST_TEMPERATURES: dict[Kind, float] = {"static": 0.07, "transformer": 0.07, "minilm": 0.035}
TEMPERATURE_STEP, RATE_STEP = 2**0.5, 2.0
"""Factors between neighbours."""

Place = tuple[int, int]
"""Steps from the first temperature and from the first rate."""


def settings_at(kind: Kind, place: Place) -> Settings:
    """The settings at a place of the unbounded grid."""
    temperature = FIRST_TEMPERATURES[kind] * TEMPERATURE_STEP ** place[0]
    return Settings(float(f"{temperature:.2g}"), float(f"{RATES[kind] * RATE_STEP ** place[1]:.3g}"))


def choose(score: Callable[[Settings], float], kind: Kind) -> Settings:
    """Climb until no neighbour in temperature or rate scores higher.

    ``score`` trains a model, so each place is asked about once. The rate goes first and as far as it gains, then the
    temperature, then again the rate: at a rate that is far too high, the best temperature is far too low (fever).
    """

    @cache
    def height(place: Place) -> float:
        return score(settings_at(kind, place))

    best = (0, 0)
    while (end := _climb(height, _climb(height, best, 1), 0)) != best:
        best = end
    return settings_at(kind, best)


def _climb(height: Callable[[Place], float], place: Place, axis: int) -> Place:
    """Go from ``place`` along an axis as long as it gains."""
    for direction in (1, -1):
        while height(ahead := _moved(place, axis, direction)) > height(place):
            place = ahead
    return place


def _moved(place: Place, axis: int, direction: int) -> Place:
    return (place[0] + direction, place[1]) if axis == 0 else (place[0], place[1] + direction)
