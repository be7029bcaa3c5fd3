"""Rules: from which score and likeness on a document is a false negative, and what vectors say nothing about."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.formats.negatives import NO_PAIR
from batchwright.formats.vectors import PairVectors, blocks
from stages.filter.params import FilterParams
from stages.filter.words import shared_words

TextsOf = Callable[[NDArray[np.int64]], tuple[list[str], list[str]]]
"""Returns the queries and documents of some rows, which ascend."""

SAMPLED_PAIRS = 2048
"""Pairs of a domain that are compared with each other to find its limit of likeness."""
EXCHANGED = 0.65
"""Share of the pairs above the limit whose documents can be exchanged."""
KEPT_WORDS = 0.8
"""Documents can be exchanged, too, if they keep this share of the words by which the own ones answer."""
EXCHANGED_BY_WORDS = 0.8
"""Share of the pairs above the limit for which they must, where the vectors find no limit. Where questions are
about different things, fewer do."""
ENOUGH, ENOUGH_BY_WORDS = 50, 200
"""Pairs above the limit that must be found before they count as evidence, by vectors and by words. A hundred, of
two million, were also found in sets where most of them are wrong."""
SAMPLED_DOCUMENTS = 512
"""Documents drawn from the domain."""
DOUBTFUL_SHARE = 0.2
"""A pair is doubtful if at least this share of them scores as high as its own document."""
MOSTLY = 0.4
"""From this share of doubtful pairs on, vectors say nothing about a domain: by random ones, .8 are doubtful, by TF-IDF
.28 at most in nine real sets."""
FEW = 20
"""Fewer pairs than that may be doubtful by chance."""
MOST_ROUNDED = 0.99
"""Limits are rounded up to hundredths, but not above this: no pair would reach them."""
AS_ALIKE = 0.1
"""A limit of likeness that at least this share of random pairs reaches tells nothing apart. In those sets .02 do."""


class Limit(NamedTuple):
    """How alike two pairs must be, or why ``auto`` found no limit; ``blind`` if the vectors know too little."""

    likeness: np.float32
    because: str = ""
    blind: bool = False


def unread(vectors: PairVectors, scores: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return of which pairs ``(N,)`` query or document has the vector 0, given their own ``scores`` ``(N,)``."""
    found: NDArray[np.bool_] = scores == 0
    for block in blocks(len(found)):
        rows = block.start + np.flatnonzero(found[block])
        found[rows] = ~(vectors.queries(rows).any(axis=1) & vectors.documents(rows).any(axis=1))
    return found


def thresholds(
    scores: NDArray[np.float32], params: FilterParams, unread: NDArray[np.bool_] | None = None
) -> NDArray[np.float32]:
    """Return each query's lowest score of a false negative, ``(N,)``, given its own document's ``scores`` ``(N,)``.

    Without a rule for scores, every score is high enough; for ``unread`` pairs ``(N,)`` none is.
    """
    lowest = _thresholds(scores, params)
    return lowest if unread is None else np.where(unread, np.float32(np.inf), lowest)


def _thresholds(scores: NDArray[np.float32], params: FilterParams) -> NDArray[np.float32]:
    if params.threshold is not None:
        return np.full_like(scores, params.threshold)
    if params.margin is None and params.factor is None:
        return np.full_like(scores, -np.inf)
    allowance = (
        np.abs(scores) * np.float32(params.factor) if params.factor is not None else np.float32(params.margin or 0)
    )
    lowest: NDArray[np.float32] = scores - allowance
    return lowest


def vague(doubtful: int, pairs: int) -> str:
    """Say so if so many pairs are doubtful that scores mean nothing."""
    if doubtful < MOSTLY * pairs or pairs < FEW:
        return ""
    return f"the own documents of {doubtful:,} of {pairs:,} pairs score no higher than others"


def likeness_limit(
    vectors: PairVectors,
    query_class: NDArray[np.int32],
    document_class: NDArray[np.int32],
    rng: np.random.Generator,
    doubtful: NDArray[np.bool_],
    unread: NDArray[np.bool_] | None = None,
    texts: TextsOf | None = None,
) -> Limit:
    """Return the cosine of q + d and q' + d' from which on d' counts as an answer to q; ``unread`` pairs do not count.

    If (q, d) and (q', d') ask for the same thing, their documents can be exchanged, so f(q, d') + f(q', d) is no lower
    than f(q, d) + f(q', d') about as often as not; if they only resemble each other, what distinguishes the queries
    distinguishes the documents too, and it nearly always is lower. In a sample of the domain, this takes the lowest
    cosine from which on ``EXCHANGED`` of the pairs, most alike first, can be exchanged. The share is above a half
    because the pairs were chosen for their high scores.

    Where each document was written for its query, its wording alone raises its score, and vectors find no limit. Words
    may, which ``texts`` are read for: pairs can be exchanged, too, if in the mean of both ``KEPT_WORDS`` of the words
    that a query shares with its document are in the other one. This takes ``EXCHANGED_BY_WORDS`` of the pairs.

    Most domains have no such cosine: the result is ``NO_PAIR``. So it is if random pairs are as alike, or if too many
    of the pairs are ``doubtful`` ``(N,)``.
    """
    if why := vague(int(np.count_nonzero(doubtful)), len(doubtful)):
        return Limit(NO_PAIR, why, blind=True)
    rows = np.sort(rng.permutation(len(vectors))[:SAMPLED_PAIRS])
    rows = rows if unread is None else rows[~unread[rows]]
    sums, queries, documents = vectors.sums(rows), vectors.queries(rows), vectors.documents(rows)
    scores = queries @ documents.T
    own = scores.diagonal()
    apart = (query_class[rows][:, None] != query_class[rows]) & (document_class[rows][:, None] != document_class[rows])
    likeness = sums @ sums.T
    lengths = likeness.diagonal()
    equal = (likeness == lengths[:, None]) & (likeness == lengths)
    pairs = np.triu(apart & ~equal, 1)  # equal vectors can always be exchanged, and tell nothing
    alike = likeness[pairs]
    exchanged = (scores + scores.T >= own[:, None] + own)[pairs]
    if len(alike) < ENOUGH:
        return Limit(NO_PAIR, f"only {len(alike)} pairs of pairs could be compared")
    order = np.argsort(-alike, kind="stable")
    found, because = _lowest(alike[order], exchanged[order], EXCHANGED, ENOUGH)
    if found is None and texts is not None:
        shares = shared_words(*texts(rows))
        kept = (shares + shares.T >= 2 * KEPT_WORDS)[pairs]
        found, because_of_words = _lowest(alike[order], kept[order], EXCHANGED_BY_WORDS, ENOUGH_BY_WORDS)
        because = f"{because}; by words, {because_of_words}"
    if found is None:
        return Limit(NO_PAIR, because)
    limit = found if found > MOST_ROUNDED else np.float32(np.ceil(found * 100) / 100)
    if (share := np.mean(alike >= limit)) >= AS_ALIKE:
        why = f"{share:.0%} of random pairs are as alike ({limit:.2f}) as those that share an answer"
        return Limit(NO_PAIR, why, blind=True)
    return Limit(limit)


def _lowest(
    alike: NDArray[np.float32], exchanged: NDArray[np.bool_], share: float, enough: int
) -> tuple[np.float32 | None, str]:
    """Return the lowest likeness from which on this ``share`` is ``exchanged``, or None and why; most alike first."""
    counts = np.arange(1, len(alike) + 1)
    reached = np.flatnonzero((exchanged.cumsum() >= share * counts) & (counts >= enough))
    if len(reached):
        return alike[reached[-1]], ""
    return None, f"{np.mean(exchanged[:enough]):.0%} of the {enough} pairs most alike can be exchanged, not {share:.0%}"


def doubtful(
    vectors: PairVectors,
    scores: NDArray[np.float32],
    document_class: NDArray[np.int32],
    rng: np.random.Generator,
    do_parts: Map = map,
) -> NDArray[np.bool_]:
    """Return which pairs ``(N,)`` are doubtful, given their own ``scores`` ``(N,)``.

    Duplicates do not count, and equal scores are as high.
    """
    drawn = np.sort(rng.permutation(len(vectors))[:SAMPLED_DOCUMENTS])
    compared = partial(_doubtful, vectors, scores, document_class, drawn)
    return np.concatenate([np.empty(0, bool), *do_parts(compared, blocks(len(vectors)))])


def _doubtful(
    vectors: PairVectors,
    scores: NDArray[np.float32],
    document_class: NDArray[np.int32],
    drawn: NDArray[np.int64],
    block: slice,
) -> NDArray[np.bool_]:
    others = document_class[block][:, None] != document_class[drawn]
    lowest = scores[block][:, None]
    as_high = others & (vectors.queries(block) @ vectors.documents(drawn).T >= lowest)
    doubts: NDArray[np.bool_] = as_high.sum(axis=1) >= DOUBTFUL_SHARE * np.maximum(others.sum(axis=1), 1)
    return doubts
