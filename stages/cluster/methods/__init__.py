"""Clustering methods. To add one, write a module here with a function of type ``Method`` and list it in ``METHODS``."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.vectors import PairVectors
from stages.cluster.methods.balance import balanced
from stages.cluster.methods.lloyd import joint_points, k_means, sum_points
from stages.cluster.methods.mirrored import mirrored
from stages.cluster.methods.swapped import swapped
from stages.cluster.params import ClusterParams

Method = Callable[[PairVectors, ClusterParams, int], NDArray[np.int32]]
"""Takes the pairs' vectors, the parameters and a seed. Returns the cluster of each pair, ``(N,)``."""

METHODS: dict[str, Method] = {
    "balanced": balanced,
    "sum": partial(k_means, sum_points),
    "joint": partial(k_means, joint_points),
    "swapped": swapped,
    "mirrored": mirrored,
}
