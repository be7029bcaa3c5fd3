"""Rules for false negatives, and how often each is right: by a set's truth, and by cells that were read by eye.

A rule takes cells and returns which of them it masks; to add one, add a line to ``RULES``.

The question to the reader of a cell was: does the document of one pair answer the query of another? In each of
squad, medquad, nl2bash, tldr_pages and torch (docstrings and functions of torch 2.13.0) these are 63 cells that some
rule might mask, drawn from strata of likeness, and the 60 hardest cells, of different queries, that the margin of .05
left. In perspectrum they are 40 cells of different claims that ``likeness: auto`` masks. In finance_10k they are the 60
hardest cells, of different queries, by TF-IDF vectors, and 40 whose likeness is at least .82. In fever they are 24 from
.8 on, in tatqa 14 from .86 on; in fever also 40 of the 4,643 that the score masks in batches by TF-IDF, and in
policyqa, where it masks none, 40 of the 6,290 from .8 on by MiniLM; in both, 40 of different queries that are the
hardest of their batches and stay negatives by TF-IDF. Ids are those that the stage ``ingest`` gives to the pairs; with
another version of torch, pairs whose code has changed are missing.

Two readers agree on .96 of 80 cells drawn from all (Cohen's kappa .75), and on .85 of 40 of which every other was a yes
or partly (.77).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.core.files import read_tsv
from experiments.masks.cells import DEPTH, Cells, Surrogate
from experiments.masks.sets import PairSet

TABLE = Path(__file__).with_name("verdicts.tsv")
MARGIN = 0.05
HALF = DEPTH // 2
UNKNOWN = ""
Row = dict[str, str | int | float]
HARDEST = "hardest unmasked"
"""The stratum of cells that the margin of .05 left; all other strata are of cells that a rule might mask."""
STRATA = (
    "likeness .8",
    "likeness .75",
    "likeness .7",
    "likeness .65",
    "likeness .55",
    "queries .75",
    "margin .05",
    HARDEST,
    "another claim",
    "hardest of all",
    "likeness, TF-IDF",
    "masked by auto, TF-IDF",
    "likeness, MiniLM",
    "hardest in batches",
)
"""Cosines are centred: the mean cosine of a set counts as 0; not in the last five. The claims are of perspectrum."""
OLD = "own - .05"
AUTO = "auto"
Rule = Callable[[Cells], NDArray[np.bool_]]
RULES: dict[str, Rule] = {
    OLD: lambda of: of.score >= of.own - MARGIN,
    "own + .1": lambda of: of.score >= of.own + 0.1,
    "own - .05, and the median own score": lambda of: of.score >= np.maximum(of.own - MARGIN, of.typical),
    "own - .05, and d' near d or q' near q: .7": lambda of: (of.score >= of.own - MARGIN) & (_nearer(of) >= 0.7),
    "own - .05, and d' near d or q' near q: .8": lambda of: (of.score >= of.own - MARGIN) & (_nearer(of) >= 0.8),
    "d' near d: .9": lambda of: of.documents >= 0.9,
    "likeness .75": lambda of: of.likeness >= 0.75,
    "likeness .8": lambda of: of.likeness >= 0.8,
    "likeness .85": lambda of: of.likeness >= 0.85,
    AUTO: lambda of: of.likeness >= of.limit,
    "auto, and own - .05": lambda of: (of.likeness >= of.limit) & (of.score >= of.own - MARGIN),
    "auto, at most half of a row": lambda of: (of.likeness >= of.limit) & (of.rank <= HALF),
    "auto, both in the other's first half": lambda of: (
        (of.likeness >= of.limit) & (np.maximum(of.rank, of.back_rank) <= HALF)
    ),
}


def _nearer(of: Cells) -> NDArray[np.float32]:
    nearer: NDArray[np.float32] = np.maximum(of.queries, of.documents)
    return nearer


class Verdict(NamedTuple):
    """A cell: the ``pair`` whose query it is, the ``other`` pair whose document it is, and whether that answers it.

    ``stands_for`` is the number of cells of the set that it stands for, as its stratum was drawn.
    """

    set: str
    pair: str
    other: str
    stratum: str
    verdict: str
    stands_for: float


def read_verdicts(file: Path = TABLE) -> list[Verdict]:
    """Read the table of verdicts."""
    rows = read_tsv(file, made_by="experiments.masks")
    return [Verdict(**{**row, "stands_for": float(row["stands_for"])}) for row in rows]  # type: ignore[arg-type]


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


def _of_best(best: Cells, masked: NDArray[np.bool_], pairs: PairSet) -> Row:
    row: Row = {"masked": float(masked.mean()), "over_half": over_half(best.row, masked)}
    if pairs.true is None:
        return {**row, "precision": UNKNOWN, "recall": UNKNOWN}
    truth = pairs.truth(best.row, best.other)
    return {**row, "precision": _share(truth[masked]), "recall": _share(masked[truth])}


def over_half(row: NDArray[np.int64], masked: NDArray[np.bool_]) -> float:
    """Share of rows with more than half of their cells masked; both arguments are ``(n,)``."""
    cells = np.bincount(row)
    hit = np.bincount(row, weights=masked, minlength=len(cells))
    return float(np.mean(2 * hit[cells > 0] > cells[cells > 0]))


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
