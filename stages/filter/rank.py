"""Rank each domain's documents for its queries, to drop inconsistent pairs and to mine hard negatives."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.core.neighbours import knn
from batchwright.formats.negatives import INCONSISTENT, KEPT, KnownPositives, Negatives, judged
from batchwright.formats.vectors import PairVectors, blocks
from stages.filter.params import MOST_RANKS, FilterParams, MineParams


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The top-ranked documents of n queries, one document per duplicate class.

    ``scores``, ``rows`` and ``rank`` are ``(n, depth)``, best first. ``rank`` counts from 0 and skips known positives,
    which have rank -1.
    """

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]
    rank: NDArray[np.int64]


def judge_by_rank(
    vectors: PairVectors,
    negatives: Negatives,
    params: FilterParams,
    rng: np.random.Generator,
    do_parts: Map = map,
) -> Negatives:
    """Return ``negatives`` with ``mined`` set and inconsistent pairs ``dropped``, as ``params`` requires.

    Compares every query with every document of the domain: N M d multiplications, with one block of each in memory.
    """
    depth = params.ranks
    if not depth:
        return negatives
    known, irrelevant = KnownPositives(negatives), judged(negatives, relevant=False)
    documents = np.unique(negatives.document_class, return_index=True)[1]
    dropped = negatives.dropped.copy()
    mined = np.full((len(negatives), params.mine.count if params.mine else 0), -1, dtype=np.int32)
    searches = [(block, depth + _most_known(negatives, known, block)) for block in blocks(len(negatives))]
    results = do_parts(partial(_search, vectors, documents), searches)
    for (block, _), (scores, rows) in zip(searches, results, strict=True):
        ranking = _rank(scores, rows, negatives, known, block)
        if params.consistency:
            lost = ~consistent(ranking, negatives.scores[block], params.consistency)
            dropped[block] = np.where(lost & (dropped[block] == KEPT), INCONSISTENT, dropped[block])
        if params.mine:
            draws = rng.random((len(ranking.rows), depth)) if params.mine.sample else None
            false = negatives.false(block, ranking.scores, vectors.likeness(block, ranking.rows))
            false &= ~irrelevant.contains(negatives.query_class[block][:, None], negatives.document_class[ranking.rows])
            mined[block] = hard_negatives(ranking, false, params.mine, draws)
    return replace(negatives, dropped=dropped, mined=mined)


def consistent(ranking: Ranking, scores: NDArray[np.float32], most: int) -> NDArray[np.bool_]:
    """Return which pairs have fewer than ``most`` documents that score higher than their own ``scores`` ``(n,)``.

    Documents with the same score as the pair's own do not count.
    """
    higher = (ranking.rank >= 0) & (ranking.scores > scores[:, None])
    kept: NDArray[np.bool_] = higher.sum(axis=1) < most
    return kept


def hard_negatives(
    ranking: Ranking, false: NDArray[np.bool_], params: MineParams, draws: NDArray[np.float64] | None
) -> NDArray[np.int32]:
    """Return the rows ``(n, count)`` of each query's hard negatives, best first, padded with -1.

    Ranks and scores are limited by ``params``; ``false`` ``(n, depth)`` marks false negatives. Takes the hardest or,
    given ``draws`` ``(n, depth)`` with a random number for each rank, those with the lowest numbers.
    """
    fit = (ranking.rank >= params.skip) & (ranking.rank < params.depth) & ~false
    if params.min_score is not None:
        fit &= ranking.scores >= params.min_score
    none = fit.shape[1]
    places = np.where(fit, np.arange(none), none)
    if draws is not None:
        drawn = np.where(fit, np.take_along_axis(draws, np.clip(ranking.rank, 0, params.depth - 1), axis=1), np.inf)
        places = np.take_along_axis(places, np.argsort(drawn, axis=1, kind="stable")[:, : params.count], axis=1)
    places = np.sort(places, axis=1)[:, : params.count]
    rows = np.pad(ranking.rows, ((0, 0), (0, 1)), constant_values=-1)
    mined = np.full((len(fit), params.count), -1, dtype=np.int32)
    mined[:, : places.shape[1]] = np.take_along_axis(rows, places, axis=1)
    return mined


def _most_known(negatives: Negatives, known: KnownPositives, block: slice) -> int:
    """How many known positives may be among the top documents of a block's queries."""
    return min(int(known.count(negatives.query_class[block]).max()), MOST_RANKS)


def _search(
    vectors: PairVectors, documents: NDArray[np.int64], search: tuple[slice, int]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    block, depth = search
    return nearest(vectors.queries(block), vectors, documents, depth)


def _rank(
    scores: NDArray[np.float32],
    rows: NDArray[np.int64],
    negatives: Negatives,
    known: KnownPositives,
    block: slice,
) -> Ranking:
    """Rank the documents found for a block of pairs."""
    positive = known.contains(negatives.query_class[block][:, None], negatives.document_class[rows])
    return Ranking(scores=scores, rows=rows, rank=np.where(positive, -1, np.cumsum(~positive, axis=1) - 1))


def nearest(
    queries: NDArray[np.float32], vectors: PairVectors, documents: NDArray[np.int64], depth: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the scores and rows of each query's best documents, best first, ``(n, min(depth, M))`` each.

    ``queries`` is ``(n, d)``. ``documents`` ``(M,)`` are the rows whose documents are searched.
    """
    scores = np.empty((len(queries), 0), np.float32)
    rows = np.empty((len(queries), 0), np.int64)
    for block in blocks(len(documents)):
        searched = vectors.documents(documents[block])
        best_scores, places = knn(queries, searched, min(depth, len(searched)), inner_product=True)
        scores = np.concatenate([scores, best_scores], axis=1)
        rows = np.concatenate([rows, documents[block][places]], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        scores, rows = np.take_along_axis(scores, best, axis=1), np.take_along_axis(rows, best, axis=1)
    return scores, rows
