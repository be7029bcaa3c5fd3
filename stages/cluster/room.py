"""What the stage takes of disk."""

import math

from batchwright.by_domain import pairs_of
from batchwright.core.paths import CLUSTERS, PAIRS
from batchwright.core.room import check_disk
from batchwright.core.runtime import scratch
from batchwright.formats.pairs import domains
from batchwright.formats.vectors import VectorStore
from stages.cluster.methods.balance.cells import CANDIDATES
from stages.cluster.params import ClusterParams

_A_CANDIDATE, _SUMS = 8, 4
"""Bytes of a cluster that may get a pair, and its score. How often clusters' sums are on disk, with those of parts."""


def check_clustering(store: VectorStore, params: ClusterParams, made: int) -> None:
    """Check disk for assignments and centroids of all draws and domains, which are copied from the scratch folder.

    ``made`` bytes of them lie there.

    Raises:
        InputError: there is too little.
    """
    names = domains(PAIRS)
    draw = 4 * pairs_of(*names) + sum(_centroids(store, params, domain) for domain in names)
    size = params.draws * draw
    check_disk({scratch("cluster"): max(0, size - made), CLUSTERS: size}, "clustering")


def spilled(store: VectorStore, params: ClusterParams, domain: str) -> float:
    """Bytes that lie in the scratch folder while a domain is clustered."""
    return _A_CANDIDATE * CANDIDATES * pairs_of(domain) + _SUMS * _centroids(store, params, domain)


def _centroids(store: VectorStore, params: ClusterParams, domain: str) -> int:
    """Bytes of the centroids of a domain, two a cluster in float32."""
    width = int(store.of(domain, checked=False).vectors.shape[1])
    return 8 * width * math.ceil(pairs_of(domain) / params.cluster_size)
