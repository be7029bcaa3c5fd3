"""Which pairs of a domain share a batch: the packing policies, and the plan of all epochs.

To add a policy, list it in ``POLICIES`` and in the matrix of ``pack`` in dvc.yaml. Whether and when batches are hard is
the ``Recipe`` of a domain.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.formats.clusters import Clusters
from stages.pack.domain import Domain
from stages.pack.params import PackParams
from stages.pack.small_domains import small_domains
from stages.pack.tour import short_tour

FEWEST_BATCHES = 25
"""Batches an epoch from which on hard ones pay; in a smaller domain, random batches are hard already."""
SMALLEST_BATCH = 16
"""Pairs of a batch that can be advised for a small domain: smaller ones have too few negatives."""
MOST_LOST = 0.05
"""Share of rows that may have more than half of their cluster masked."""
SAMPLE = 256
"""Clusters that are measured."""
CURES = {
    "score": "most are by score: a higher filter.likeness could make it hard",
    "judged": "most are by judgements",
    "known_positive": "most are known positives, of queries and documents that repeat",
    "duplicate": "most are duplicates, more than there are clusters: a smaller cluster_size could make it hard",
}
"""What could be done where masks leave little of a cluster, by the most frequent of the ``REASONS``."""
_HALF = Fraction(1, 2)

Draws = Sequence[Clusters]
"""One or more clusterings of a domain."""
Policy = Callable[[Clusters, int, float, np.random.Generator], NDArray[np.int64]]
"""Takes a domain's clusters, the batch size, the share of a batch that comes from one cluster, and a generator.
Returns row numbers in the order in which they are cut into batches; rows that do not fill a batch come last."""
Measure = Callable[[NDArray[np.int64]], Mapping[str, float]]
"""Returns the measures of some rows, as if they were a batch."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A planned batch, made from clustering number ``draw`` of its domain.

    ``rows`` ``(B,)`` are row numbers among the domain's training pairs.
    """

    epoch: int
    domain: str
    draw: int
    rows: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The share of a batch that comes from one cluster, one value per epoch, and why."""

    shares: list[float]
    reason: str


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
    if recipe:
        shares = recipe.shares
    else:
        shares = [0.0] if params.cluster_share == "auto" or policy == "random" else params.cluster_share
    return [shares[min(epoch, len(shares) - 1)] for epoch in range(params.epochs)]


def _batches_of_epoch(
    draws: Draws, policy: str, params: PackParams, key: tuple[int, str, int], share: float
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the clustering's number and the rows of each batch of one epoch; ``key`` is seed, domain and epoch.

    The domain's weight is the number of passes, of which the last may be partial. What it takes of a batch then adds up
    over the epochs.
    """
    seed, domain, epoch = key
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


def _rng(seed: int, policy: str, epoch: int, domain: str, number: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, epoch, number, int(content_id(policy, domain), 16)])


def contextual(clusters: Clusters, batch_size: int, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Order pairs in groups of ``share * batch_size``, each from one cluster or from neighbouring clusters.

    A cluster's shuffled pairs fill as many groups as they can. The remainders of all clusters, in the order of a tour
    over the centroids, fill the other groups. A batch consists of random groups: a share of 1 makes the hardest
    batches, a share of 0 random ones.

    Contextual Document Embeddings (section 4.1) instead concatenates the clusters and cuts them into batches, so that
    most batches straddle two clusters.
    """
    group = max(1, round(share * batch_size))
    if group == 1:
        return random(clusters, batch_size, share, rng)
    by_cluster = _members(clusters, rng)
    groups = [rows[end - group : end] for rows in by_cluster for end in range(group, len(rows) + 1, group)]
    rest = _remainders(clusters, by_cluster, group, rng)
    groups += np.split(rest, range(group, len(rest), group))
    if group == batch_size:
        return np.concatenate(groups)
    short = groups.pop() if len(groups[-1]) < group else rest[:0]
    return np.concatenate([*(groups[place] for place in rng.permutation(len(groups))), short])


def random(clusters: Clusters, batch_size: int, share: float, rng: np.random.Generator) -> NDArray[np.int64]:  # noqa: ARG001
    """Return the domain's pairs in random order, as a control."""
    return rng.permutation(np.flatnonzero(clusters.assignment >= 0))


POLICIES: dict[str, Policy] = {"contextual": contextual, "random": random}


def _members(clusters: Clusters, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    shuffled = rng.permutation(np.flatnonzero(clusters.assignment >= 0))
    by_cluster = shuffled[np.argsort(clusters.assignment[shuffled], kind="stable")]
    return np.split(by_cluster, np.cumsum(clusters.sizes)[:-1])


def _remainders(
    clusters: Clusters, by_cluster: Sequence[NDArray[np.int64]], group: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the pairs that do not fill a group of their cluster, in the order of a tour over these clusters."""
    remaining = np.flatnonzero(clusters.sizes % group)
    if not len(remaining):
        return np.empty(0, dtype=np.int64)
    tour = short_tour(clusters.centroids[remaining].sum(axis=1), int(rng.integers(len(remaining))))
    return np.concatenate(
        [by_cluster[cluster][len(by_cluster[cluster]) // group * group :] for cluster in remaining[tour]]
    )


def choose_recipe(name: str, domain: Domain, clusters: Clusters, params: PackParams, seed: int) -> Recipe | None:
    """Choose a recipe for a domain that can fill a batch, unless ``params.cluster_share`` is one."""
    if params.cluster_share != "auto" or clusters.sizes.sum() < params.batch_size:
        return None
    rng = np.random.default_rng([seed, int(content_id("recipe", name), 16)])

    def measure(rows: NDArray[np.int64]) -> Mapping[str, float]:
        return domain.batch(rows, clusters.assignment[rows])[1]

    return choose(clusters, params.batch_size, params.epochs, measure, rng)


def choose(clusters: Clusters, batch_size: int, epochs: int, measure: Measure, rng: np.random.Generator) -> Recipe:
    """Choose random batches first and hard ones in the second half of the epochs, or random batches only.

    A hard batch consists of whole clusters. They are of no use to a small domain, where they are a large part of all
    its pairs, nor where they are made of documents that answer each other's queries: most of them would be masked.
    """
    random = [0.0] * epochs
    pairs = int(clusters.sizes.sum())
    batches = pairs // batch_size
    if batches < FEWEST_BATCHES:
        smaller = pairs // FEWEST_BATCHES
        cure = f"; a batch_size of {smaller} would make it hard" if smaller >= SMALLEST_BATCH else ""
        return Recipe(shares=random, reason=f"{batches} batches an epoch, fewer than {FEWEST_BATCHES}{cure}")
    share = 1 / max(1, round(batch_size / max(np.median(clusters.sizes), 1)))
    group = round(share * batch_size)
    if group < 2:
        reason = "most clusters are single pairs; a larger cluster_size would make it hard"
        return Recipe(shares=random, reason=reason)
    order = POLICIES["contextual"](clusters, group, 1.0, rng)
    drawn = np.sort(rng.permutation(len(order) // group)[:SAMPLE])
    measured = [measure(order[place * group : (place + 1) * group]) for place in drawn]
    lost = sum(measures["rows_mostly_masked"] for measures in measured) / (len(measured) * group)
    if lost > MOST_LOST:
        most = max(CURES, key=lambda reason: sum(measures[f"masked_{reason}"] for measures in measured))
        reason = f"{lost:.0%} of the rows would lose most of their cluster to masks; {CURES[most]}"
        return Recipe(shares=random, reason=reason)
    hard = epochs // 2
    if not hard:
        reason = "a single epoch, and training begins with random batches; two epochs would make it hard"
        return Recipe(shares=random, reason=reason)
    return Recipe(
        shares=random[hard:] + [share] * hard,
        reason=f"{batches} batches an epoch, and {lost:.1%} of the rows lose most of their cluster to masks",
    )
