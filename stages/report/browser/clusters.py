"""Clusters on the map: their sizes, hardness and positions, with texts and batches as examples."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from batchwright.formats.clusters import Clusters
from stages.report.browser.batch import evenly

MOST = 500
"""Clusters on the map."""
EXAMPLES = 3

Place = tuple[str, int]
"""A domain and the number of a cluster."""


class Examples:
    """Collects, for each cluster, the batches that have most of it, and the pairs that are closest to its centroid."""

    def __init__(self) -> None:
        self._batches: dict[Place, Counter[int]] = defaultdict(Counter)
        self._pairs: dict[Place, dict[int, float]] = defaultdict(dict)

    def add(
        self, batch: int, domain: str, clusters: NDArray[np.int32], pairs: list[int], closeness: NDArray[np.float64]
    ) -> None:
        """Add the rows of a batch; ``closeness`` ``(B,)`` is their similarity to the centroid of their cluster."""
        for cluster, pair, close in zip(clusters.tolist(), pairs, closeness.tolist(), strict=True):
            place = (domain, cluster)
            self._batches[place][batch] += 1
            known = self._pairs[place]
            known[pair] = close
            if len(known) > EXAMPLES:
                del known[min(known, key=lambda number: (known[number], -number))]

    def batches(self, place: Place) -> list[int]:
        """Return the batch with most pairs of a cluster; none if no pair is in a batch."""
        return [batch for batch, _ in self._batches[place].most_common(1)]

    def pairs(self, place: Place) -> list[int]:
        """Return the pairs closest to the centroid, the closest first."""
        known = self._pairs[place]
        return sorted(known, key=lambda pair: (-known[pair], pair))


def draw_map(clusters: Mapping[str, Clusters], examples: Examples) -> dict[str, Any]:
    """Return the map as the page's scripts read it, of at most ``MOST`` clusters evenly spread over all.

    The hardness of a cluster is the mean similarity of its queries to its documents.
    """
    every = [(domain, number) for domain, of_domain in clusters.items() for number in range(len(of_domain.centroids))]
    places = [every[index] for index in evenly(len(every), MOST)]
    centroids = np.stack([clusters[domain].centroids[number] for domain, number in places])
    sizes = {domain: of_domain.sizes for domain, of_domain in clusters.items()}
    x, y = positions(centroids.sum(axis=1)).T.tolist()
    names = list(clusters)
    return {
        "domain": [names.index(domain) for domain, _ in places],
        "cluster": [number for _, number in places],
        "size": [int(sizes[domain][number]) for domain, number in places],
        "hardness": [round(float(value), 3) for value in np.einsum("kd,kd->k", centroids[:, 0], centroids[:, 1])],
        "x": x,
        "y": y,
        "batches": [examples.batches(place) for place in places],
        "pairs": [examples.pairs(place) for place in places],
        "all": len(every),
    }


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
