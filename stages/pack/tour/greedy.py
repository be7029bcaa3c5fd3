"""The greedy tour of Contextual Document Embeddings: a baseline, and a good start for a few centroids."""

import numpy as np
from numpy.typing import NDArray


def greedy_tour(centroids: NDArray[np.float32], start: int) -> NDArray[np.int64]:
    """Return the path ``(K,)`` from ``start`` that always goes to the nearest unvisited centroid.

    ``centroids`` is ``(K, d)``; the nearest centroid has the highest cosine. The cost is O(K^2 d).
    """
    lengths = np.linalg.norm(centroids, axis=1, keepdims=True)
    remaining = centroids / np.maximum(lengths, np.finfo(np.float32).tiny)
    names = np.arange(len(centroids))
    order = np.empty(len(centroids), dtype=np.int64)
    position = start
    for left in range(len(centroids), 0, -1):
        here = remaining[position].copy()
        order[len(centroids) - left] = names[position]
        # Move the last centroid to the visited one's place, so that the remaining ones stay contiguous.
        remaining[position], names[position] = remaining[left - 1], names[left - 1]
        if left > 1:
            position = int(np.argmax(remaining[: left - 1] @ here))
    return order
