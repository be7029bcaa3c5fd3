"""The order of all batches: which rows of which domain are batch n, over all epochs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.formats.clusters import Clusters
from stages.pack.params import PackParams
from stages.pack.policies import POLICIES

Draws = Mapping[str, Sequence[Clusters]]
"""The clusterings of each domain, one or more."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """``rows`` ``(B,)`` are row numbers among the domain's training pairs."""

    epoch: int
    domain: str
    rows: NDArray[np.int64]


def plan_batches(clusters: Draws, policy: str, params: PackParams, seed: int) -> list[Batch]:
    """Batches of all epochs, in training order: inside an epoch those of all domains, shuffled.

    Every draw is seeded by domain and epoch, so that no domain changes the batches of another.

    Raises:
        InputError: a domain cannot fill one batch, a weight is of a domain that is not there, or no batch is left.
    """
    _check_weights(clusters, params.weights)
    clusters = _with_pairs(clusters, params.batch_size)
    batches = []
    for epoch in range(params.epochs):
        of_epoch = [
            Batch(epoch=epoch, domain=domain, rows=rows)
            for domain, draws in sorted(clusters.items())
            for rows in _batches_of_domain(draws, policy, params, epoch, (seed, domain))
        ]
        batches += [of_epoch[place] for place in _rng(seed, policy, epoch, "").permutation(len(of_epoch))]
    if not batches:
        raise InputError("no batch is left; raise pack.weights")
    return batches


def _batches_of_domain(
    draws: Sequence[Clusters], policy: str, params: PackParams, epoch: int, named: tuple[int, str]
) -> Iterator[NDArray[np.int64]]:
    """A domain's batches of one epoch: as many passes over its pairs as it weighs, the last one in part."""
    seed, domain = named
    weight = params.weights.get(domain, 1.0)
    share = params.cluster_share[min(epoch, len(params.cluster_share) - 1)]
    passes = math.ceil(weight)
    for number in range(passes):
        rng = _rng(seed, policy, epoch, domain, number)
        draw = draws[(epoch * passes + number) % len(draws)]
        order = POLICIES[policy](draw, params.batch_size, share, rng)
        batches = _cut(order, params.batch_size, refill=params.left_over == "refill")
        taken = round(min(1.0, weight - number) * len(batches))
        yield from (batches[place] for place in np.sort(rng.permutation(len(batches))[:taken]))


def _cut(order: NDArray[np.int64], batch_size: int, *, refill: bool) -> list[NDArray[np.int64]]:
    """Batches of exactly ``batch_size``; refilled, the last one goes back over pairs of the one before it."""
    batches = [order[end - batch_size : end] for end in range(batch_size, len(order) + 1, batch_size)]
    if refill and len(order) % batch_size:
        batches.append(order[-batch_size:])
    return batches


def _rng(seed: int, policy: str, epoch: int, domain: str, number: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, epoch, number, int(content_id(policy, domain), 16)])


def _with_pairs(clusters: Draws, batch_size: int) -> Draws:
    """The domains that have training pairs; raises InputError where these do not fill a batch."""
    pairs = {domain: int(draws[0].sizes.sum()) for domain, draws in sorted(clusters.items())}
    if not any(pairs.values()):
        raise InputError("no domain has training pairs")
    small = [domain for domain, count in pairs.items() if 0 < count < batch_size]
    if small:
        listed = ", ".join(f"'{domain}' ({_of(pairs[domain], clusters[domain])})" for domain in small[:10])
        more = f" and {len(small) - 10} more" if len(small) > 10 else ""
        raise InputError(
            f"pack.batch_size is {batch_size}, but these domains hold fewer training pairs: {listed}{more}; "
            "lower pack.batch_size, or give small domains one name in ingest.sources"
        )
    return {domain: draws for domain, draws in clusters.items() if pairs[domain]}


def _of(count: int, draws: Sequence[Clusters]) -> str:
    before = len(draws[0].assignment)
    return f"{count}, of {before} before filter.consistency" if count < before else str(count)


def _check_weights(clusters: Draws, weights: Mapping[str, float]) -> None:
    if unknown := sorted(weights.keys() - clusters.keys()):
        raise InputError(f"pack.weights: no domain is named {unknown[0]!r}; there are {', '.join(sorted(clusters))}")
