"""Baseline: the clustering of the reference implementation of Contextual Document Embeddings."""

import math

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.core.neighbours import on_gpu
from batchwright.formats.vectors import PairVectors, blocks
from stages.cluster.methods.lloyd import joint_points, sample
from stages.cluster.params import ClusterParams

ITERATIONS = 100
RUNS = 3


def mirrored(vectors: PairVectors, params: ClusterParams, seed: int) -> NDArray[np.int32]:
    """Cluster by spherical K-Means, trained on both [q | d] and [d | q]; assign each pair by its [q | d].

    Keeps the reference's settings and ignores ``params.iterations``: 100 iterations, the best of 3 runs, and FAISS's
    default sample of 256 points per centroid.

    Returns:
        The cluster of each pair, ``(N,)``.
    """
    k = math.ceil(len(vectors) / params.cluster_size)
    if k <= 1:
        return np.zeros(len(vectors), dtype=np.int32)
    points = joint_points(vectors, sample(len(vectors), max(params.resident_pairs, k), seed))
    queries, documents = np.split(points, 2, axis=1)
    both = np.concatenate([points, np.concatenate([documents, queries], axis=1)])
    faiss.normalize_L2(both)
    kmeans = faiss.Kmeans(both.shape[1], k, niter=ITERATIONS, nredo=RUNS, spherical=True, seed=seed, gpu=on_gpu())
    kmeans.train(both)
    found = [kmeans.index.search(joint_points(vectors, block), 1)[1][:, 0] for block in blocks(len(vectors))]
    return np.concatenate(found).astype(np.int32)
