"""The clustering of the reference implementation of Contextual Document Embeddings, as a baseline."""

import math

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.formats.vectors import PairVectors, blocks
from stages.cluster.methods.lloyd import joint_points, sample
from stages.cluster.params import ClusterParams

ITERATIONS = 100
RUNS = 3


def mirrored(vectors: PairVectors, params: ClusterParams, seed: int) -> NDArray[np.int32]:
    """Clusters ``(N,)`` by spherical K-Means on [q | d] and [d | q], where only [q | d] is assigned.

    The settings are the reference's own whatever ``params`` say: 100 steps, the best of 3 runs, FAISS's
    silent sample of 256 points a centroid.
    """
    k = math.ceil(len(vectors) / params.cluster_size)
    if k <= 1:
        return np.zeros(len(vectors), dtype=np.int32)
    points = joint_points(vectors, sample(len(vectors), max(params.resident_pairs, k), seed))
    queries, documents = np.split(points, 2, axis=1)
    both = np.concatenate([points, np.concatenate([documents, queries], axis=1)])
    faiss.normalize_L2(both)
    kmeans = faiss.Kmeans(
        both.shape[1], k, niter=ITERATIONS, nredo=RUNS, spherical=True, seed=seed, gpu=faiss.get_num_gpus() > 0
    )
    kmeans.train(both)
    found = [kmeans.index.search(joint_points(vectors, block), 1)[1][:, 0] for block in blocks(len(vectors))]
    return np.concatenate(found).astype(np.int32)
