"""Plan the batches of all epochs: the domain and rows of each, in training order."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.formats.clusters import Clusters
from stages.pack.params import PackParams
from stages.pack.policies import POLICIES
from stages.pack.recipe import Recipe
from stages.pack.sizes import small_domains

Draws = Sequence[Clusters]
"""One or more clusterings of a domain."""
_HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A planned batch, made from clustering number ``draw`` of its domain.

    ``rows`` ``(B,)`` are row numbers among the domain's training pairs.
    """

    epoch: int
    domain: str
    draw: int
    rows: NDArray[np.int64]


def plan_batches(clusters: Mapping[str, Draws], policy: str, params: PackParams, seed: int) -> list[Batch]:
    """Return the batches of all domains in training order; a ``cluster_share`` of ``auto`` is random.

    Raises:
        InputError: a domain that cannot fill a batch is refused, a weight names an unknown domain, or no batch is left.
    """
    small_domains({domain: (pairs_of(draws), len(draws[0].assignment)) for domain, draws in clusters.items()}, params)
    planned = {domain: plan_domain(domain, draws, policy, params, seed) for domain, draws in clusters.items()}
    epochs = {domain: [batch.epoch for batch in batches] for domain, batches in planned.items()}
    return [planned[domain][place] for domain, place in training_order(epochs, policy, seed)]


def plan_domain(
    domain: str, draws: Draws, policy: str, params: PackParams, seed: int, recipe: Recipe | None = None
) -> list[Batch]:
    """Return a domain's batches, epoch by epoch.

    The shares of ``recipe`` hold, or else ``params.cluster_share``; ``auto`` without a recipe is random. Random draws
    are seeded by domain and epoch, so that no domain changes the batches of another.
    """
    shares = shares_of(policy, params, recipe)
    if not pairs_of(draws):
        return []
    return [
        Batch(epoch=epoch, domain=domain, draw=draw, rows=rows)
        for epoch in range(params.epochs)
        for draw, rows in _batches_of_epoch(draws, policy, params, (seed, domain, epoch), shares[epoch])
    ]


def shares_of(policy: str, params: PackParams, recipe: Recipe | None) -> list[float]:
    """Return the share of a batch that comes from one cluster, for each epoch; 0 if batches are random."""
    given = [0.0] if params.cluster_share == "auto" or policy == "random" else params.cluster_share
    shares = recipe.shares if recipe else given
    return [shares[min(epoch, len(shares) - 1)] for epoch in range(params.epochs)]


def training_order(epochs: Mapping[str, Sequence[int]], policy: str, seed: int) -> list[tuple[str, int]]:
    """Return the order in which batches are trained on, as domains and places among the domain's batches.

    ``epochs[domain]`` are the epochs of the domain's batches. Within an epoch, the batches of all domains are shuffled.

    Raises:
        InputError: there are no batches.
    """
    by_epoch: dict[int, list[tuple[str, int]]] = {}
    for domain in sorted(epochs):
        for place, epoch in enumerate(epochs[domain]):
            by_epoch.setdefault(epoch, []).append((domain, place))
    if not by_epoch:
        raise InputError("no batch is left; raise pack.weights, or lower pack.batch_size")
    return [
        by_epoch[epoch][place]
        for epoch in sorted(by_epoch)
        for place in _rng(seed, policy, epoch, "").permutation(len(by_epoch[epoch]))
    ]


def pairs_of(draws: Draws) -> int:
    """Return how many of a domain's training pairs are in clusters."""
    return int(draws[0].sizes.sum())


def _batches_of_epoch(
    draws: Draws, policy: str, params: PackParams, named: tuple[int, str, int], share: float
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the number of the clustering and the rows of each of a domain's batches of one epoch.

    The domain's weight is the number of passes, of which the last may be partial. What it takes of a batch then adds up
    over the epochs.
    """
    seed, domain, epoch = named
    weight = params.weights.get(domain, 1.0)
    passes = math.ceil(weight)
    for number in range(passes):
        rng = _rng(seed, policy, epoch, domain, number)
        draw = (epoch * passes + number) % len(draws)
        order = POLICIES[policy](draws[draw], params.batch_size, share, rng)
        batches = _cut(order, params)
        wanted = min(Fraction(1), Fraction(str(weight)) - number) * len(batches)  # exact: floats may miss a batch
        taken = math.floor((epoch + 1) * wanted + _HALF) - math.floor(epoch * wanted + _HALF)
        yield from ((draw, batches[place]) for place in np.sort(rng.permutation(len(batches))[:taken]))


def _cut(order: NDArray[np.int64], params: PackParams) -> list[NDArray[np.int64]]:
    """Cut ``order`` into whole batches; ``refill`` completes the last with earlier pairs."""
    batch_size = params.batch_size
    if len(order) < batch_size:
        return [] if params.small_domains == "drop" else [np.resize(order, batch_size)]
    batches = [order[end - batch_size : end] for end in range(batch_size, len(order) + 1, batch_size)]
    if params.left_over == "refill" and len(order) % batch_size:
        batches.append(order[-batch_size:])
    return batches


def _rng(seed: int, policy: str, epoch: int, domain: str, number: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, epoch, number, int(content_id(policy, domain), 16)])
