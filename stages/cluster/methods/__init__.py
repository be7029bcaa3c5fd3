"""Clustering methods. To add one, write a module here with a function of type ``Method`` and list it in ``METHODS``."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.formats.vectors import PairVectors
from stages.cluster.methods.balance import balanced
from stages.cluster.params import ClusterParams


class Method(Protocol):
    """Takes the pairs' vectors, the parameters, a seed and a ``map`` for parts of the work, if it has any.

    Returns the cluster of each pair, ``(N,)``.
    """

    def __call__(
        self, vectors: PairVectors, params: ClusterParams, seed: int, do_parts: Map = map, /
    ) -> NDArray[np.int32]:
        """Cluster the pairs."""


METHODS: dict[str, Method] = {"balanced": balanced}
