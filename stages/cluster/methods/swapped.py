"""Lloyd's algorithm with the asymmetric distance of Contextual Document Embeddings."""

import math

import numpy as np
from numpy.typing import NDArray

from batchwright.core.neighbours import knn
from batchwright.formats.vectors import PairVectors, blocks
from stages.cluster.methods.lloyd import EARLY_STOP, joint_points, k_means, sum_points
from stages.cluster.params import ClusterParams
from stages.cluster.side_sums import side_sums


def swapped(vectors: PairVectors, params: ClusterParams, seed: int) -> NDArray[np.int32]:
    """Cluster by Lloyd steps that compare queries with mean documents and documents with mean queries.

    This distance is eq. 3 of Contextual Document Embeddings. The steps start from K-Means on q + d.

    Returns:
        The cluster of each pair, ``(N,)``.
    """
    assignment = k_means(sum_points, vectors, params, seed)
    k = math.ceil(len(vectors) / params.cluster_size)
    if k <= 1:
        return assignment
    previous = -math.inf
    for _ in range(params.iterations):
        sizes = np.maximum(np.bincount(assignment, minlength=k), 1).astype(np.float32)
        means = side_sums(vectors, assignment, k)[:, ::-1].reshape(k, -1) / sizes[:, None]
        found = [knn(joint_points(vectors, block), means, 1) for block in blocks(len(vectors))]
        assignment = np.concatenate([nearest[:, 0] for _, nearest in found]).astype(np.int32)
        cost = -sum(float(distances.sum(dtype=np.float64)) for distances, _ in found)
        if cost - previous < EARLY_STOP * abs(cost):
            break
        previous = cost
    return assignment
