"""The words by which documents answer their queries: what tells a query from others like it is in its document, too."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from batchwright.core.words import MARKS, words
from batchwright.formats.pairs import PairsPart

WORD = re.compile(rf"(?:\w+[{MARKS}]*)++")
_STEPS = 64
"""Weights of words are multiples of one in so many, so that sums of them are exact."""


def texts_of_rows(parts: Iterable[PairsPart], rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
    """Return the queries and the documents of some ``rows``, which ascend, of a domain."""
    queries: list[str] = []
    documents: list[str] = []
    start = 0
    for part in parts:
        for batch in part.read(["query", "document"]):
            here = pa.array(rows[(rows >= start) & (rows < start + len(batch))] - start)
            queries += batch["query"].take(here).to_pylist()
            documents += batch["document"].take(here).to_pylist()
            start += len(batch)
    return queries, documents


def shared_words(queries: Sequence[str], documents: Sequence[str]) -> NDArray[np.float64]:
    """Return how much of what query i shares with document i document j has, too, as shares ``(n, n)``.

    Words count as much as they are rare among the documents. A query that shares no word shares nothing.
    """
    asked, found = ([set(words(text.casefold(), WORD)) for text in texts] for texts in (queries, documents))
    place = {word: number for number, word in enumerate(sorted(set().union(*found)))}
    there = _matrix([sorted(map(place.__getitem__, of)) for of in found], len(place))
    common = _matrix(
        [sorted(map(place.__getitem__, of & has)) for of, has in zip(asked, found, strict=True)], len(place)
    )
    rarity = 1 + np.log(len(found) / np.maximum(there.sum(axis=0), 1))
    weights = np.round(_STEPS * rarity).astype(np.int64)
    weighted = common.multiply(weights[None]).tocsr()
    of_all = np.maximum(weighted.sum(axis=1), 1)
    shares: NDArray[np.float64] = (weighted @ there.T).toarray() / of_all[:, None]
    return shares


def _matrix(rows: Sequence[Sequence[int]], width: int) -> csr_array:
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.fromiter((column for row in rows for column in row), np.int64, int(ends[-1]))
    return csr_array((np.ones(len(columns), np.int64), columns, ends), shape=(len(rows), width))
