"""Nearest neighbours and K-Means with FAISS: on a GPU if it finds one, otherwise on the CPU.

For vectors on the grid (``batchwright.core.grid``), both give the same on every processor.
"""

from functools import cache, partial
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from batchwright.core.grid import COARSE
from batchwright.core.runtime import workers

EARLY_STOP = 1e-3

MOST_ON_GPU = 2048
"""Neighbours of a vector that FAISS can find on a GPU."""


def on_gpu() -> bool:
    """Whether FAISS finds a GPU."""
    return bool(faiss.get_num_gpus())


def processes() -> int:
    """Processes that may share work in which vectors are searched: one on a GPU, which does not survive a fork."""
    return 1 if on_gpu() else workers()


def knn(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], k: int, *, inner_product: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the ``k`` nearest of ``vectors`` ``(N, d)`` to each of ``queries`` ``(n, d)``, nearest first.

    Returns:
        Squared distances, or with ``inner_product`` the inner products, and rows of ``vectors``, ``(n, k)`` each.
    """
    metric = faiss.METRIC_INNER_PRODUCT if inner_product else faiss.METRIC_L2
    search: Any = partial(faiss.knn_gpu, _resources()) if on_gpu() and k <= MOST_ON_GPU else faiss.knn
    found: tuple[NDArray[np.float32], NDArray[np.int64]] = search(queries, vectors, k, metric=metric)
    return found


def kmeans(points: NDArray[np.float32], k: int, *, iterations: int, seed: int) -> NDArray[np.float32]:
    """Return centroids ``(k, d)`` after ``iterations`` Lloyd steps, or fewer if one gains less than a thousandth.

    Points, at most 2 long, are rounded to steps of ``COARSE``, and so are centroids.
    """
    training = faiss.Kmeans(
        points.shape[1],
        k,
        niter=iterations,
        seed=seed,
        gpu=on_gpu(),
        min_points_per_centroid=1,
        max_points_per_centroid=len(points),
        early_stop_threshold=EARLY_STOP,
        int_centroids=True,
    )
    training.train(np.rint(points / np.float32(COARSE)))
    return np.asarray(training.centroids, np.float32) * np.float32(COARSE)


@cache
def _resources() -> Any:
    """Memory of the GPU that all searches of this process share."""
    return faiss.StandardGpuResources()
