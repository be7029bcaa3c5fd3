"""Rank each domain's documents for its queries, to drop inconsistent pairs and to mine hard negatives."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.core.neighbours import knn
from batchwright.formats.negatives import INCONSISTENT, KEPT, KnownPositives, Negatives, judged
from batchwright.formats.vectors import PairVectors, blocks
from stages.filter.params import FilterParams
from stages.negatives.choice import MOST_RANKS, Ranking, choose


def judge_by_rank(
    vectors: PairVectors,
    negatives: Negatives,
    params: FilterParams,
    keys: NDArray[np.uint64] | None = None,
    do_parts: Map = map,
) -> Negatives:
    """Return ``negatives`` with ``mined`` set and inconsistent pairs ``dropped``, as ``params`` requires.

    ``keys`` ``(N,)`` decide what is drawn at random (see ``draw_keys``).

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
        positive = known.contains(negatives.query_class[block][:, None], negatives.document_class[rows])
        ranking = Ranking.of(scores, rows, positive, negatives.scores[block])
        if params.consistency:
            lost = ~consistent(ranking, params.consistency)
            dropped[block] = np.where(lost & (dropped[block] == KEPT), INCONSISTENT, dropped[block])
        if params.mine:
            false = negatives.false(block, scores, vectors.likeness(block, rows))
            false &= ~irrelevant.contains(negatives.query_class[block][:, None], negatives.document_class[rows])
            mined[block] = choose([ranking], [false], params.mine, None if keys is None else keys[block])
    return replace(negatives, dropped=dropped, mined=mined)


def consistent(ranking: Ranking, most: int) -> NDArray[np.bool_]:
    """Return which pairs ``(n,)`` have fewer than ``most`` documents that score higher than their own.

    Documents with the same score as the pair's own do not count.
    """
    higher = (ranking.rank >= 0) & (ranking.scores > ranking.own[:, None])
    kept: NDArray[np.bool_] = higher.sum(axis=1) < most
    return kept


def _most_known(negatives: Negatives, known: KnownPositives, block: slice) -> int:
    """How many known positives may be among the top documents of a block's queries."""
    return min(int(known.count(negatives.query_class[block]).max()), MOST_RANKS)


def _search(
    vectors: PairVectors, documents: NDArray[np.int64], search: tuple[slice, int]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    block, depth = search
    return nearest(vectors.queries(block), vectors, documents, depth)


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
