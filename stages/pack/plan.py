"""Plan the batches of all epochs: the domain and rows of each, in training order."""

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
from stages.pack.recipe import Recipe

Draws = Mapping[str, Sequence[Clusters]]
"""One or more clusterings of each domain."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A planned batch, made from clustering number ``draw`` of its domain.

    ``rows`` ``(B,)`` are row numbers among the domain's training pairs.
    """

    epoch: int
    domain: str
    draw: int
    rows: NDArray[np.int64]


def plan_batches(
    clusters: Draws, policy: str, params: PackParams, seed: int, recipes: Mapping[str, Recipe] | None = None
) -> list[Batch]:
    """Return the batches of all epochs in training order; within an epoch, the batches of all domains are shuffled.

    Random draws are seeded by domain and epoch, so that adding a domain does not change the batches of another. The
    shares of ``recipes`` hold for their domains, ``params.cluster_share`` for others; ``auto`` without a recipe is
    random.

    Raises:
        InputError: a domain cannot fill one batch, a weight names an unknown domain, or no batch is left.
    """
    _check_weights(clusters, params.weights)
    clusters = _with_pairs(clusters, params.batch_size)
    given = [0.0] if params.cluster_share == "auto" else params.cluster_share
    shares = {domain: recipe.shares for domain, recipe in (recipes or {}).items()}
    batches = []
    for epoch in range(params.epochs):
        of_epoch = [
            Batch(epoch=epoch, domain=domain, draw=draw, rows=rows)
            for domain, draws in sorted(clusters.items())
            for draw, rows in _batches_of_domain(
                draws, policy, params, (seed, domain, epoch), shares.get(domain, given)
            )
        ]
        batches += [of_epoch[place] for place in _rng(seed, policy, epoch, "").permutation(len(of_epoch))]
    if not batches:
        raise InputError("no batch is left; raise pack.weights")
    return batches


def _batches_of_domain(
    draws: Sequence[Clusters], policy: str, params: PackParams, named: tuple[int, str, int], shares: Sequence[float]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the number of the clustering and the rows of each of a domain's batches of one epoch.

    The domain's weight is the number of passes, of which the last may be partial.
    """
    seed, domain, epoch = named
    weight = params.weights.get(domain, 1.0)
    share = shares[min(epoch, len(shares) - 1)]
    passes = math.ceil(weight)
    for number in range(passes):
        rng = _rng(seed, policy, epoch, domain, number)
        draw = (epoch * passes + number) % len(draws)
        order = POLICIES[policy](draws[draw], params.batch_size, share, rng)
        batches = _cut(order, params.batch_size, refill=params.left_over == "refill")
        taken = round(min(1.0, weight - number) * len(batches))
        yield from ((draw, batches[place]) for place in np.sort(rng.permutation(len(batches))[:taken]))


def _cut(order: NDArray[np.int64], batch_size: int, *, refill: bool) -> list[NDArray[np.int64]]:
    """Cut ``order`` into batches of exactly ``batch_size``; ``refill`` completes the last with earlier pairs."""
    batches = [order[end - batch_size : end] for end in range(batch_size, len(order) + 1, batch_size)]
    if refill and len(order) % batch_size:
        batches.append(order[-batch_size:])
    return batches


def _rng(seed: int, policy: str, epoch: int, domain: str, number: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, epoch, number, int(content_id(policy, domain), 16)])


def _with_pairs(clusters: Draws, batch_size: int) -> Draws:
    """Return the domains that have training pairs; raise InputError if one of them cannot fill a batch."""
    pairs = {domain: int(draws[0].sizes.sum()) for domain, draws in sorted(clusters.items())}
    if not any(pairs.values()):
        raise InputError("no domain has training pairs")
    small = [domain for domain, count in pairs.items() if 0 < count < batch_size]
    if small:
        listed = ", ".join(f"'{domain}' ({_of(pairs[domain], clusters[domain])})" for domain in small[:10])
        more = f" and {len(small) - 10} more" if len(small) > 10 else ""
        raise InputError(
            f"pack.batch_size is {batch_size}, but these domains hold fewer training pairs: {listed}{more}; "
            "lower pack.batch_size, or give small domains the same name in ingest.sources"
        )
    return {domain: draws for domain, draws in clusters.items() if pairs[domain]}


def _of(count: int, draws: Sequence[Clusters]) -> str:
    before = len(draws[0].assignment)
    return f"{count}, of {before} before filter.consistency" if count < before else str(count)


def _check_weights(clusters: Draws, weights: Mapping[str, float]) -> None:
    if unknown := sorted(weights.keys() - clusters.keys()):
        raise InputError(f"pack.weights: unknown domain {unknown[0]!r}; the domains are {', '.join(sorted(clusters))}")
