"""Clusters as in Merrick, Embedding And Clustering Your Data Can Improve Contrastive Pretraining (arXiv 2407.18887)."""

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.formats.vectors import PairVectors

CLUSTERS, ITERATIONS = 10, 25


def sources(vectors: PairVectors, seed: int) -> list[NDArray[np.int64]]:
    """Split pairs into ten clusters by spherical K-Means on their documents."""
    documents = vectors.documents(slice(None))
    means = faiss.Kmeans(vectors.width, CLUSTERS, niter=ITERATIONS, spherical=True, seed=seed + 1)
    means.train(documents)
    nearest = means.index.search(documents, 1)[1][:, 0]
    return [np.flatnonzero(nearest == number) for number in range(CLUSTERS)]
