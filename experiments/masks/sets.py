"""Sets of pairs in which rules are checked, with what is known about which document answers which query."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Labelled(NamedTuple):
    """A pair, and the labels of what its query asks and of what its document answers; empty if nothing is known."""

    query: str
    document: str
    asks: str = ""
    answers: str = ""


@dataclass(frozen=True, kw_only=True)
class PairSet:
    """N pairs, sorted by ``ids``, which are those that the stage ``ingest`` gives.

    A document answers a query if (what the query asks, what the document answers) is in ``true``; that is ``None``
    where nothing is known.
    """

    name: str
    ids: list[str]
    pairs: list[Labelled]
    true: frozenset[tuple[str, str]] | None

    @classmethod
    def of(cls, name: str, pairs: dict[str, Labelled], true: frozenset[tuple[str, str]] | None) -> "PairSet":
        """Make a set of pairs by id."""
        ids = sorted(pairs)
        return cls(name=name, ids=ids, pairs=[pairs[key] for key in ids], true=true)

    def sample(self, count: int, wanted: Collection[str]) -> "PairSet":
        """The first ``count`` pairs, which ids make a random sample, and those whose ids are ``wanted``."""
        taken = {
            key: pair
            for place, (key, pair) in enumerate(zip(self.ids, self.pairs, strict=True))
            if place < count or key in wanted
        }
        return PairSet.of(self.name, taken, self.true)

    def truth(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the document of each pair in ``others`` answers the query of the pair in ``rows``; broadcast."""
        true = self.true or frozenset()
        labels = sorted({label for edge in true for label in edge})
        places = {label: place for place, label in enumerate(labels)}
        edges = np.array([places[asked] * len(labels) + places[answer] for asked, answer in true], np.int64)
        asks = np.array([places.get(pair.asks, -1) for pair in self.pairs], np.int64)[rows]
        answers = np.array([places.get(pair.answers, -1) for pair in self.pairs], np.int64)[others]
        known: NDArray[np.bool_] = np.isin(asks * len(labels) + answers, edges) & (asks >= 0) & (answers >= 0)
        return known
