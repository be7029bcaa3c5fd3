"""Where clusters lie on the map."""

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits


def positions(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return a point in the unit square for each vector ``(K, d)``, such that similar vectors lie close together.

    This is exact t-SNE, which starts from the two main directions, on one thread: the same every time.
    """
    count = len(vectors)
    if count < 4 or not np.ptp(vectors, axis=0).any():
        return np.column_stack([np.linspace(0.25, 0.75, count), np.full(count, 0.5)])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    with threadpool_limits(1):
        points = TSNE(
            init="pca", method="exact", perplexity=min(30.0, (count - 1) / 3), random_state=0, max_iter=500
        ).fit_transform(vectors / np.where(lengths > 0, lengths, 1))
    low, high = points.min(axis=0), points.max(axis=0)
    placed: NDArray[np.float64] = (points - low) / np.where(high > low, high - low, 1)
    return placed.astype(np.float64).round(4)
