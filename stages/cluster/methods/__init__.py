"""Clustering methods. To add one, write a module here with a function of type ``Method`` and list it in ``METHODS``."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain import Map
from batchwright.formats.vectors import PairVectors
from stages.cluster.methods.balance import balanced
from stages.cluster.methods.lloyd import joint_points, k_means, sum_points
from stages.cluster.methods.mirrored import mirrored
from stages.cluster.methods.swapped import swapped
from stages.cluster.params import ClusterParams


class Method(Protocol):
    """Takes the pairs' vectors, the parameters, a seed and a ``map`` for parts of the work, if it has any.

    Returns the cluster of each pair, ``(N,)``.
    """

    def __call__(
        self, vectors: PairVectors, params: ClusterParams, seed: int, do_parts: Map = map, /
    ) -> NDArray[np.int32]:
        """Cluster the pairs."""


def _undivided(cluster: Callable[[PairVectors, ClusterParams, int], NDArray[np.int32]]) -> Method:
    """A method whose work has no parts."""
    return lambda vectors, params, seed, _=map: cluster(vectors, params, seed)


METHODS: dict[str, Method] = {
    "balanced": balanced,
    "sum": _undivided(partial(k_means, sum_points)),
    "joint": _undivided(partial(k_means, joint_points)),
    "swapped": _undivided(swapped),
    "mirrored": _undivided(mirrored),
}
