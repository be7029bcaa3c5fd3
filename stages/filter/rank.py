"""What a ranking of its domain's documents says of each pair: whether to keep it, and its hard negatives."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from formats.negatives import Negatives
from formats.positives import KnownPositives
from formats.vectors import PairVectors, blocks
from stages.filter.params import MOST_RANKS, FilterParams, MineParams
from stages.filter.rules import ROUNDING
from stages.filter.search import nearest


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The documents that rank highest for n queries, one a class, known positives left out of the count.

    ``scores`` and ``rows`` are ``(n, depth)``, best first; ``rank`` counts from 0, -1 for known positives.
    """

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]
    rank: NDArray[np.int64]


def judge_by_rank(vectors: PairVectors, negatives: Negatives, params: FilterParams) -> Negatives:
    """``negatives`` with ``kept`` and ``mined`` as ``params`` asks for them.

    Every query is compared with every document: N M d multiplications, blocks of both in memory.
    """
    wanted = [params.consistency, params.mine and params.mine.depth]
    depth = max(ranks or 0 for ranks in wanted)
    if not depth:
        return negatives
    known = KnownPositives(negatives)
    documents = np.unique(negatives.document_class, return_index=True)[1]
    kept = np.ones(len(negatives), dtype=bool)
    mined = np.full((len(negatives), params.mine.count if params.mine else 0), -1, dtype=np.int32)
    for block in tqdm(list(blocks(len(negatives))), desc="rank", unit="block", leave=False, mininterval=2, delay=2):
        ranking = _rank(vectors, documents, negatives, known, block, depth)
        if params.consistency:
            kept[block] = consistent(ranking, negatives.scores[block], params.consistency)
        if params.mine:
            mined[block] = hardest(ranking, negatives.thresholds[block], params.mine)
    return replace(negatives, kept=kept, mined=mined)


def consistent(ranking: Ranking, scores: NDArray[np.float32], most: int) -> NDArray[np.bool_]:
    """Whether fewer than ``most`` documents score higher than a pair's own ``scores`` ``(n,)``; ties do not."""
    higher = (ranking.rank >= 0) & (ranking.scores > scores[:, None] + ROUNDING)
    kept: NDArray[np.bool_] = higher.sum(axis=1) < most
    return kept


def hardest(ranking: Ranking, thresholds: NDArray[np.float32], params: MineParams) -> NDArray[np.int32]:
    """Rows ``(n, count)`` of the documents that rank highest and stay below ``thresholds`` ``(n,)``; -1 is none."""
    inside = (ranking.rank >= params.skip) & (ranking.rank < params.depth)
    fit = inside & (ranking.scores < thresholds[:, None])
    mined = np.full((len(fit), params.count), -1, dtype=np.int32)
    order = np.argsort(~fit, axis=1, kind="stable")[:, : params.count]
    rows = np.where(np.take_along_axis(fit, order, axis=1), np.take_along_axis(ranking.rows, order, axis=1), -1)
    mined[:, : rows.shape[1]] = rows
    return mined


def _rank(
    vectors: PairVectors,
    documents: NDArray[np.int64],
    negatives: Negatives,
    known: KnownPositives,
    block: slice,
    depth: int,
) -> Ranking:
    """Rank ``documents`` for a block of pairs: ``depth`` of them, and room for known positives above these."""
    queries = negatives.query_class[block]
    room = min(int(known.count(queries).max()), MOST_RANKS)
    scores, rows = nearest(vectors.queries(block), vectors, documents, depth + room)
    positive = known.contains(queries[:, None], negatives.document_class[rows])
    return Ranking(scores=scores, rows=rows, rank=np.where(positive, -1, np.cumsum(~positive, axis=1) - 1))
