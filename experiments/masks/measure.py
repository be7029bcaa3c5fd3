"""What a rule masks in a set, and how much of that is right."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.masks.cells import Cells, Surrogate
from experiments.masks.rules import RULES
from experiments.masks.sets import PairSet
from experiments.masks.verdicts import HARDEST, Verdict

Row = dict[str, str | int | float]
UNKNOWN = ""


def measure(pairs: PairSet, surrogate: Surrogate, verdicts: Sequence[Verdict]) -> list[Row]:
    """Return a row of figures for each rule. Without truth, or without cells that were read, the figures are empty.

    ``masked`` is a share of each query's best documents, ``over_half`` the share of the queries with more than half of
    these masked; ``precision`` and ``recall`` are those by the set's truth. ``yes``, ``partly`` and ``no`` count the
    cells that were read and that the rule masks; ``yes_of_all`` is the share of yes among all masked cells that those
    stand for, and ``hardest_left`` the number of yes among the hardest cells that the rule leaves.
    """
    best = surrogate.best_cells()
    place = {key: number for number, key in enumerate(pairs.ids)}
    read = [each for each in verdicts if each.set == pairs.name and {each.pair, each.other} <= place.keys()]
    row, other = (np.array([place[getattr(each, side)] for each in read], np.int64) for side in ("pair", "other"))
    looked_at = surrogate.cells(row, other)
    return [
        {
            "set": pairs.name,
            "pairs": len(pairs.ids),
            "limit": surrogate.limit,
            "rule": name,
            **_of_best(best, rule(best), pairs),
            **_of_read(read, rule(looked_at)),
        }
        for name, rule in RULES.items()
    ]


def over_half(row: NDArray[np.int64], masked: NDArray[np.bool_]) -> float:
    """Share of rows with more than half of their cells masked; both arguments are ``(n,)``."""
    cells = np.bincount(row)
    hit = np.bincount(row, weights=masked, minlength=len(cells))
    return float(np.mean(2 * hit[cells > 0] > cells[cells > 0]))


def _of_best(best: Cells, masked: NDArray[np.bool_], pairs: PairSet) -> Row:
    found: Row = {"masked": float(masked.mean()), "over_half": over_half(best.row, masked)}
    if pairs.true is None:
        return {**found, "precision": UNKNOWN, "recall": UNKNOWN}
    truth = pairs.truth(best.row, best.other)
    return {**found, "precision": _share(truth[masked]), "recall": _share(masked[truth])}


def _of_read(read: Sequence[Verdict], masked: NDArray[np.bool_]) -> Row:
    names = ("yes", "partly", "no")
    if not read:
        return dict.fromkeys((*names, "yes_of_all", "hardest_left"), UNKNOWN)
    hit = [each for each, is_masked in zip(read, masked, strict=True) if is_masked and each.stratum != HARDEST]
    left = [each for each, is_masked in zip(read, masked, strict=True) if not is_masked and each.stratum == HARDEST]
    counts = Counter(each.verdict for each in hit)
    right = sum(each.stands_for for each in hit if each.verdict == "yes")
    return {
        **{name: counts[name] for name in names},
        "yes_of_all": right / sum(each.stands_for for each in hit) if hit else UNKNOWN,
        "hardest_left": sum(each.verdict == "yes" for each in left),
    }


def _share(of: NDArray[np.bool_]) -> float | str:
    return float(of.mean()) if len(of) else UNKNOWN
