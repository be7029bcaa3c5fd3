"""Cells that were read by eye: does the document of one pair answer the query of another?

In each of squad, medquad, nl2bash, tldr_pages and torch (docstrings and functions of torch 2.13.0) these are 63 cells
that some rule might mask, drawn from strata of likeness, and the 60 hardest cells, of different queries, that the
margin of .05 left. In perspectrum they are 40 cells of different claims that ``likeness: auto`` masks. Ids are those
that the stage ``ingest`` gives to the pairs; with another version of torch, pairs whose code has changed are missing.

Two readers agree on .96 of 80 cells drawn from all (Cohen's kappa .75), and on .85 of 40 of which every other was a yes
or partly (.77).
"""

from pathlib import Path
from typing import NamedTuple

from batchwright.core.files import read_tsv

TABLE = Path(__file__).with_name("verdicts.tsv")
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
)
"""Cosines are centred: the mean cosine of a set counts as 0. The last is of perspectrum."""


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
