"""Rules for false negatives. A rule takes cells and returns which of them it masks; to add one, add a line."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from experiments.masks.cells import DEPTH, Cells

Rule = Callable[[Cells], NDArray[np.bool_]]
MARGIN = 0.05
HALF = DEPTH // 2

OLD = "own - .05"
AUTO = "auto"

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
