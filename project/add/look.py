"""Look at the pairs of a source as ``ingest`` would read them."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.ingest.normalise import Pair, RowError, normalise
from pipelines.ingest.sources import AnySource
from pipelines.ingest.sources.base import Row

SAMPLE = 20_000


@dataclass(frozen=True, kw_only=True)
class Look:
    """The first pairs of a source, and the reasons for which rows among them are none."""

    pairs: list[Pair]
    rejected: Counter[str]
    more: bool

    @property
    def repeated(self) -> int:
        """How many of the pairs occurred before."""
        return len(self.pairs) - len({(pair.query, pair.document) for pair in self.pairs})


def look_at(source: AnySource) -> Look:
    """Read the first ``SAMPLE`` rows.

    Raises:
        InputError: the source cannot be read.
    """
    pairs: list[Pair] = []
    rejected: Counter[str] = Counter()
    rows = _rows(source)
    for row in itertools.islice(rows, SAMPLE):
        try:
            pairs.append(normalise(row))
        except RowError as error:
            rejected[str(error)] += 1
    return Look(pairs=pairs, rejected=rejected, more=next(rows, None) is not None)


def _rows(source: AnySource) -> Iterator[Row]:
    return (row for part in source.parts() for row in source.rows(part))
