"""The choice of an arm's settings, alike for all arms: the best of all neighbours in each of them."""

from collections.abc import Callable, Sequence
from functools import cache, partial, reduce

from experiments.rivals.encoders import RATES, Kind
from experiments.rivals.negatives import Teacher
from experiments.rivals.training import Settings

FIRST_TEMPERATURES: dict[Kind, float] = {"static": 0.07, "transformer": 0.07, "minilm": 0.035}
FACTORS, DIGITS = (2**0.5, 2.0, 2.0, 4.0), (2, 3, 2, 3)
"""Factors between neighbours, and digits that are kept."""
ORDER = (1, 0, 2, 3)
"""Which of the settings goes first: the rate, and as far as it gains. At a rate that is far too high, the best
temperature is far too low (fever)."""
FAINT = -4
"""Steps down from a teacher's first weight to where a second climb begins, with hardly any teacher: the first may end
on a hill that is lower than that (nl2bash)."""

Place = tuple[int, ...]
"""Steps from each of the first settings."""


def first_settings(kind: Kind, teacher: Teacher | None = None, temperature: float | None = None) -> Settings:
    """Where the climb begins: at an arm's own ``temperature``, if it has one."""
    plain = Settings(temperature or FIRST_TEMPERATURES[kind], RATES[kind])
    return plain._replace(teacher_temperature=teacher.temperature, teacher_weight=teacher.weight) if teacher else plain


def settings_at(first: Settings, place: Place) -> Settings:
    """The settings at a place of the unbounded grid around the first ones."""
    given = [value for value in first if value is not None]
    moved = zip(given, FACTORS, place, DIGITS, strict=False)
    settings = [float(f"{value * factor**step:.{digits}g}") for value, factor, step, digits in moved]
    return Settings(*settings)


def choose(score: Callable[[Settings], float], first: Settings, *, keep_temperature: bool = False) -> Settings:
    """Climb until no neighbour in any of the settings scores higher; ``score`` trains a model."""
    axes = [axis for axis in ORDER if first[axis] is not None and (axis or not keep_temperature)]
    others: list[Place] = [] if first.teacher_weight is None else [(0, 0, 0, FAINT)]
    return settings_at(first, climb_all(lambda place: score(settings_at(first, place)), axes, *others))


def climb_all(height: Callable[[Place], float], axes: Sequence[int], *others: Place) -> Place:
    """Climb from the first place, and from ``others``, until no neighbour along any axis is higher; return the highest.

    Each place is asked about once. One setting goes as far as it gains, then the next, and so on, until none gains.
    """
    once = cache(height)

    def end(best: Place) -> Place:
        while (ahead := reduce(partial(climb, once), axes, best)) != best:
            best = ahead
        return best

    first: Place = (0,) * (max(axes) + 1)
    return max(map(end, (first, *others)), key=once)


def climb(height: Callable[[Place], float], place: Place, axis: int) -> Place:
    """Go from ``place`` along an axis, both ways, as long as it gains; of two hills, take the higher (fever)."""

    def end(direction: int) -> Place:
        at = place
        while height(ahead := _moved(at, axis, direction)) > height(at):
            at = ahead
        return at

    return max(end(1), end(-1), key=height)


def _moved(place: Place, axis: int, direction: int) -> Place:
    return tuple(step + direction * (axis == each) for each, step in enumerate(place))
