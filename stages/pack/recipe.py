"""Decide for each domain which epochs are hard: ``pack.cluster_share: auto``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import content_id
from batchwright.formats.clusters import Clusters
from stages.pack.domain import Domain
from stages.pack.params import PackParams
from stages.pack.policies import POLICIES

FEWEST_BATCHES = 25
"""Batches an epoch from which on hard ones pay; in a smaller domain, random batches are hard already."""
MOST_LOST = 0.05
"""Share of rows that may have more than half of their cluster masked."""
SAMPLE = 256
"""Clusters that are measured."""

Measure = Callable[[NDArray[np.int64]], Mapping[str, float]]
"""Returns the measures of some rows, as if they were a batch."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The share of a batch that comes from one cluster, one value per epoch, and why."""

    shares: list[float]
    reason: str


def choose_recipe(name: str, domain: Domain, clusters: Clusters, params: PackParams, seed: int) -> Recipe | None:
    """Choose for a domain that can fill a batch, unless ``params.cluster_share`` says what to do."""
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
    batches = int(clusters.sizes.sum()) // batch_size
    if batches < FEWEST_BATCHES:
        return Recipe(shares=random, reason=f"{batches} batches an epoch, fewer than {FEWEST_BATCHES}")
    share = 1 / max(1, round(batch_size / max(np.median(clusters.sizes), 1)))
    group = round(share * batch_size)
    if group < 2:
        return Recipe(shares=random, reason="most clusters are single pairs")
    order = POLICIES["contextual"](clusters, group, 1.0, rng)
    drawn = np.sort(rng.permutation(len(order) // group)[:SAMPLE])
    found = [measure(order[place * group : (place + 1) * group]) for place in drawn]
    lost = sum(each["rows_mostly_masked"] for each in found) / (len(found) * group)
    if lost > MOST_LOST:
        return Recipe(shares=random, reason=f"{lost:.0%} of the rows would lose most of their cluster to masks")
    hard = epochs // 2
    if not hard:
        return Recipe(shares=random, reason="a single epoch, and training begins with random batches")
    return Recipe(
        shares=random[hard:] + [share] * hard,
        reason=f"{batches} batches an epoch, and {lost:.1%} of the rows lose most of their cluster to masks",
    )
