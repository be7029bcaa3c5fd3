"""Find out how alike two pairs of a domain must be for the document of one to answer the query of the other."""

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.negatives import NO_PAIR
from batchwright.formats.vectors import PairVectors
from stages.filter.rules import ROUNDING

SAMPLE = 2048
"""Pairs that are compared with each other."""
EXCHANGED = 0.65
"""Share of the pairs at least this alike whose documents can be exchanged."""
ENOUGH = 50
"""Such pairs that must be found before they count as evidence."""


def likeness_limit(
    vectors: PairVectors,
    query_class: NDArray[np.int32],
    document_class: NDArray[np.int32],
    rng: np.random.Generator,
) -> np.float32:
    """Return the cosine of q + d and q' + d' from which on d' counts as an answer to q.

    If (q, d) and (q', d') ask for the same thing, their documents can be exchanged, so f(q, d') + f(q', d) is no lower
    than f(q, d) + f(q', d') about as often as not; if they only resemble each other, what distinguishes the queries
    distinguishes the documents too, and it nearly always is lower. In a sample of the domain, this takes the lowest
    cosine from which on ``EXCHANGED`` of the pairs, most alike first, can be exchanged. The share is above a half
    because the pairs were chosen for their high scores. Most domains have no such cosine: the result is ``NO_PAIR``.
    """
    rows = np.sort(rng.permutation(len(vectors))[:SAMPLE])
    sums, queries, documents = vectors.sums(rows), vectors.queries(rows), vectors.documents(rows)
    scores = queries @ documents.T
    own = scores.diagonal()
    apart = (query_class[rows][:, None] != query_class[rows]) & (document_class[rows][:, None] != document_class[rows])
    likeness = sums @ sums.T
    pairs = np.triu(apart & (likeness < 1 - ROUNDING), 1)  # equal vectors can always be exchanged, and tell nothing
    alike = likeness[pairs]
    exchanged = (scores + scores.T >= own[:, None] + own - ROUNDING)[pairs]
    if exchanged.sum() < EXCHANGED * ENOUGH:
        return NO_PAIR
    order = np.argsort(-alike, kind="stable")
    counts = np.arange(1, len(order) + 1)
    reached = np.flatnonzero((exchanged[order].cumsum() >= EXCHANGED * counts) & (counts >= ENOUGH))
    if not len(reached):
        return NO_PAIR
    # Rounded, so that the last bits of the sample's cosines do not matter.
    return np.float32(np.ceil(alike[order[reached[-1]]] * 100) / 100)
