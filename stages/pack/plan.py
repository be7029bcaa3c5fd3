"""The order of all batches: which rows of which domain are batch n, over all epochs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formats.clusters import Clusters
from formats.errors import InputError
from formats.fingerprint import content_id
from stages.pack.params import PackParams
from stages.pack.policies import POLICIES


@dataclass(frozen=True, kw_only=True)
class Batch:
    """``rows`` ``(B,)`` are row numbers among the domain's training pairs."""

    epoch: int
    domain: str
    rows: NDArray[np.int64]


def plan_batches(clusters: Mapping[str, Clusters], policy: str, params: PackParams, seed: int) -> list[Batch]:
    """Batches of all epochs, in training order: inside an epoch those of all domains, shuffled.

    Every draw is seeded by domain and epoch, so that no domain changes the batches of another.

    Raises:
        InputError: a domain cannot fill one batch.
    """
    _check_sizes(clusters, params.batch_size)
    batches = []
    for epoch in range(params.epochs):
        of_epoch = [
            Batch(epoch=epoch, domain=domain, rows=rows)
            for domain, of_domain in sorted(clusters.items())
            for rows in POLICIES[policy](of_domain, params.batch_size, _rng(seed, policy, epoch, domain))
        ]
        batches += [of_epoch[place] for place in _rng(seed, policy, epoch, "").permutation(len(of_epoch))]
    return batches


def _rng(seed: int, policy: str, epoch: int, domain: str) -> np.random.Generator:
    return np.random.default_rng([seed, epoch, int(content_id(policy, domain), 16)])


def _check_sizes(clusters: Mapping[str, Clusters], batch_size: int) -> None:
    small = {domain: len(of.assignment) for domain, of in sorted(clusters.items()) if len(of.assignment) < batch_size}
    if small:
        listed = ", ".join(f"'{domain}' ({pairs})" for domain, pairs in list(small.items())[:10])
        more = f" and {len(small) - 10} more" if len(small) > 10 else ""
        raise InputError(
            f"pack.batch_size is {batch_size}, but these domains hold fewer training pairs: {listed}{more}; "
            "lower pack.batch_size, or give small domains one name in ingest.sources"
        )
