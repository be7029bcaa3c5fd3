"""What each run is compared with."""

from collections.abc import Mapping
from pathlib import PurePath

from batchwright.core.paths import START_MODELS
from batchwright.formats.runs import Run

RANDOM = "random"


def references(name: str, runs: Mapping[str, Run]) -> dict[str, str]:
    """Return the systems to compare the run ``name`` with, by what the difference to them shows.

    ``start`` is the model it starts from, ``BM25`` the lexical baseline, and ``random batches`` the run of the same
    variant from the same start on random batches, if there is one and it is another.
    """
    run = runs[name]
    start = PurePath(run.start)
    found = {"start": f"{start.name}, before training" if start.parent == START_MODELS else start.name, "BM25": "BM25"}
    for other, candidate in runs.items():
        alike = (candidate.variant, candidate.start) == (run.variant, run.start)
        if alike and candidate.batches == RANDOM != run.batches:
            found["random batches"] = other
    return found
