"""Communities of pairs as in B3 (Thirukovalluru et al., 2025, arXiv 2505.11293)."""

import faiss
import numpy as np
import pymetis
from numpy.typing import NDArray
from scipy.sparse import coo_matrix

from batchwright.formats.vectors import PairVectors

SKIPPED, DEPTH, SIZE = 30, 100, 32
"""The paper's p, m and K."""


def communities(vectors: PairVectors, seed: int) -> list[NDArray[np.int64]]:
    """Split pairs into communities of about ``SIZE``.

    An edge joins i and j if the rank of j's document for i's query, counted from 0, lies in [p, p + m]; METIS cuts the
    graph. Small sets leave out fewer ranks: at most a quarter of the pairs.
    """
    count = len(vectors)
    skipped = min(SKIPPED, count // 4)
    last = min(skipped + DEPTH + 1, count)
    queries, documents = vectors.queries(slice(None)), vectors.documents(slice(None))
    near = faiss.knn(queries, documents, last, metric=faiss.METRIC_INNER_PRODUCT)[1][:, skipped:]
    rows, columns = np.repeat(np.arange(count), near.shape[1]), near.ravel()
    apart = rows != columns
    rows, columns = rows[apart], columns[apart]
    graph = coo_matrix((np.ones(len(rows), np.int8), (rows, columns)), shape=(count, count)).tocsr()
    graph = (graph + graph.T).tocsr()
    options = pymetis.Options(seed=seed)
    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
    part = np.asarray(pymetis.part_graph(max(1, count // SIZE), adjacency, options=options)[1])
    order = np.argsort(part, kind="stable")
    return [group for group in np.split(order, np.cumsum(np.bincount(part))[:-1]) if len(group)]
