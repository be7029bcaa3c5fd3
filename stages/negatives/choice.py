"""Which of the documents that rank high for a query become its hard negatives."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from batchwright.core.fingerprint import text_keys
from batchwright.core.params import Params

MOST_RANKS = 1000
NONE = -1
_NOWHERE = np.iinfo(np.int64).max
"""The place of a document that cannot be chosen."""
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Of the generator SplitMix64."""


class Choice(Params):
    """Which of the documents that rank high for a query become its hard negatives."""

    count: int = Field(default=4, gt=0)
    """Hard negatives per query."""
    depth: int = Field(default=50, gt=0, le=MOST_RANKS)
    """Choose from the query's top ``depth`` documents, not counting known positives."""
    skip: int = Field(default=0, ge=0)
    """Number of top ranks to skip."""
    max_share: float | None = Field(default=None, gt=0, le=1)
    """Largest score of a hard negative, as a share of that of the query's own document, such as 0.95 (NV-Retriever);
    documents above it may be false negatives. Null sets no limit."""
    max_score: float | None = None
    """Largest score of a hard negative. Null sets no limit."""
    min_score: float | None = None
    """Smallest score of a hard negative; documents below it are too easy. Null sets no limit."""
    sample: bool = False
    """Draw hard negatives at random from those allowed, instead of taking the hardest. The draw depends on the seed,
    the pair and the ranks alone."""

    @model_validator(mode="after")
    def _enough_ranks(self) -> "Choice":
        if self.depth - self.skip < self.count:
            raise ValueError(f"{self.count} negatives cannot come from ranks {self.skip + 1} to {self.depth}")
        return self

    @model_validator(mode="after")
    def _some_scores(self) -> "Choice":
        if self.min_score is not None and self.max_score is not None and self.min_score > self.max_score:
            raise ValueError(
                f"no negative scores at least {self.min_score:g} (min_score) and at most {self.max_score:g} "
                "(max_score); exchange them, or remove one"
            )
        return self


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """What a miner ranks highest for n queries, one document per duplicate class.

    ``scores``, ``rows`` and ``rank`` are ``(n, k)``, best first. ``rank`` counts from 0 and skips known positives,
    which have rank -1, as has every place where no document is, whose row is -1. ``own`` ``(n,)`` are the scores of the
    queries' own documents, NaN where they are not known because these documents rank lower.
    """

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]
    rank: NDArray[np.int64]
    own: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float32],
        rows: NDArray[np.int64],
        positive: NDArray[np.bool_],
        own: NDArray[np.float32],
    ) -> "Ranking":
        """Rank documents, of which known positives are ``positive`` ``(n, k)``."""
        left_out = positive | (rows == NONE)
        rank = np.where(left_out, -1, np.cumsum(~left_out, axis=1) - 1)
        return cls(scores=scores, rows=rows, rank=rank, own=own)


def draw_keys(seed: int, ids: Iterable[str]) -> NDArray[np.uint64]:
    """Return what decides the draws of pairs with these ``ids``, ``(n,)``."""
    keys: NDArray[np.uint64] = text_keys(f"{seed} {pair}" for pair in ids).view("<u8")[::2]
    return keys


def choose(
    rankings: Sequence[Ranking],
    false: Sequence[NDArray[np.bool_]],
    params: Choice,
    keys: NDArray[np.uint64] | None = None,
) -> NDArray[np.int32]:
    """Choose the hard negatives of n queries from the rankings of one or more miners.

    A document may be chosen if it is allowed by a miner's ranks and scores, and ranks or scores too high for none; a
    miner that does not find the own document says nothing by ``max_share``. ``false`` ``(n, k)`` marks the false
    negatives in each ranking. The miners take turns: the best of each, then the second of each, and so on. The first in
    this order are chosen, or with ``sample`` those that ``keys`` (see ``draw_keys``) draw.

    Returns:
        Rows ``(n, count)``, in this order, padded with -1.
    """
    rows = np.concatenate([ranking.rows for ranking in rankings], axis=1)
    places = np.concatenate(
        [
            np.where(_allowed(ranking, params) & ~wrong, ranking.rank * len(rankings) + number, _NOWHERE)
            for number, (ranking, wrong) in enumerate(zip(rankings, false, strict=True))
        ],
        axis=1,
    )
    if len(rankings) > 1:
        high = np.concatenate([_too_high(ranking, params) for ranking in rankings], axis=1)
        places = _each_once(rows, places, high)
    order = places if keys is None or not params.sample else _draws(keys, places)
    best = np.argsort(order, axis=1, kind="stable")[:, : params.count]
    best = np.take_along_axis(best, np.argsort(np.take_along_axis(places, best, axis=1), axis=1, kind="stable"), axis=1)
    there = np.take_along_axis(places, best, axis=1) < _NOWHERE
    chosen = np.full((len(rows), params.count), NONE, dtype=np.int32)
    chosen[:, : best.shape[1]] = np.where(there, np.take_along_axis(rows, best, axis=1), NONE)
    return chosen


def _too_high(ranking: Ranking, params: Choice) -> NDArray[np.bool_]:
    high = ranking.rank < params.skip
    if params.max_score is not None:
        high |= ranking.scores > params.max_score
    if params.max_share is not None:
        high |= ranking.scores > _highest(ranking, params.max_share)
    return high & (ranking.rank >= 0)


def _allowed(ranking: Ranking, params: Choice) -> NDArray[np.bool_]:
    allowed = (ranking.rank >= 0) & (ranking.rank < params.depth) & ~_too_high(ranking, params)
    if params.max_share is not None:
        allowed &= ~np.isnan(ranking.own)[:, None]  # all that was found scores higher than the own document
    if params.min_score is not None:
        allowed &= ranking.scores >= params.min_score
    return allowed


def _highest(ranking: Ranking, share: float) -> NDArray[np.float32]:
    """Return ``share`` of each own score, ``(n, 1)``; of a negative one, that is less, too."""
    highest = ranking.own - np.abs(ranking.own) * np.float32(1 - share)
    return highest[:, None].astype(np.float32)


def _each_once(rows: NDArray[np.int64], places: NDArray[np.int64], high: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return ``places`` ``(n, k)`` with only the first place of each document, and none of one that is ``high``."""
    if not rows.size:
        return places
    order = np.lexsort((places, rows), axis=1)
    sorted_rows = np.take_along_axis(rows, order, axis=1)
    first = np.ones(rows.shape, bool)
    first[:, 1:] = sorted_rows[:, 1:] != sorted_rows[:, :-1]
    starts = np.flatnonzero(first)
    is_high = np.logical_or.reduceat(np.take_along_axis(high, order, axis=1).ravel(), starts)
    kept = np.full(rows.size, _NOWHERE)
    kept[starts] = np.where(is_high, _NOWHERE, np.take_along_axis(places, order, axis=1).ravel()[starts])
    found = np.empty_like(places)
    np.put_along_axis(found, order, kept.reshape(rows.shape), axis=1)
    return found


def _draws(keys: NDArray[np.uint64], places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a random number for each place ``(n, k)``, which the pair's key and the place decide."""
    mixed = keys[:, None] + (places.astype(np.uint64) + np.uint64(1)) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    mixed = (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)
    return np.where(places == _NOWHERE, np.iinfo(np.uint64).max, mixed)
