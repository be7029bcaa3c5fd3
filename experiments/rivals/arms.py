"""The arms: how each makes batches, what it masks, and its loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from batchwright.formats.shards.shard_set import stands_for
from batchwright.training.losses import compare
from experiments.rivals.library import TEMPERATURE, guided_loss, no_duplicates, ranking_loss
from experiments.rivals.limit import all_documents, all_documents_loss
from experiments.rivals.masks import RULES, Rule, document_counts
from experiments.rivals.mining import minable, mined
from experiments.rivals.orders import ORDERS
from experiments.rivals.ours import HARD, as_one, grouped, reclustered
from experiments.rivals.pairs import Training
from experiments.rivals.streams import Order
from experiments.rivals.training import Batch, Loss, pairs_only

StandFor = Literal["batch", "domain"]
"""See ``negatives_stand_for``."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """``batches`` takes the pairs, the number of epochs and a seed; ``watches`` if it asks for ``Training.current``."""

    batches: Callable[[Training, int, int], Iterator[Batch]]
    loss: Callable[[Training], Loss]
    watches: bool = False


def masked_loss(rule: Rule, stand_for: StandFor, training: Training) -> Loss:
    """The project's loss, with the masks of ``rule``; see ``negatives_stand_for``."""
    mask = rule(training)
    sizes = document_counts(training)

    def loss(queries: Tensor, documents: Tensor, batch: Batch) -> Tensor:
        size = len(batch.rows)
        masked = torch.from_numpy(mask(batch.rows)).to(queries.device)
        none, absent = queries.new_empty(size, 0, queries.shape[1]), masked[:, :0]
        groups = np.arange(size) if batch.groups is None else batch.groups
        each = queries.new_tensor(stands_for(groups, sizes[str(training.domains[batch.rows[0]])]))
        found = each if stand_for == "domain" else None
        return compare(queries, documents, masked, none, absent, TEMPERATURE, stands_for=found).loss

    return loss


def ours_arm(shares: list[float], rule: str = "known", stand_for: StandFor = "domain", draws: int | None = None) -> Arm:
    """An arm with our batches and our loss; see ``grouped``."""
    batches = partial(grouped, shares, clusterings=draws)
    return Arm(batches=batches, loss=partial(masked_loss, RULES[rule], stand_for))


def ordered(order: Order, rule: str = "known", stand_for: StandFor = "batch") -> Arm:
    """An arm that only orders pairs."""

    def batches(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
        return pairs_only(order(training, epochs, seed))

    return Arm(batches=batches, loss=partial(masked_loss, RULES[rule], stand_for))


def unlabelled(arm: Arm) -> Arm:
    """The same arm if nobody had divided the pairs into domains."""
    return replace(
        arm,
        batches=lambda training, epochs, seed: arm.batches(as_one(training), epochs, seed),
        loss=lambda training: arm.loss(as_one(training)),
    )


OURS = [0.0, HARD]

ARMS: dict[str, Arm] = {
    **{name: ordered(order) for name, order in ORDERS.items()},
    **{f"{name}, our loss": ordered(order, stand_for="domain") for name, order in ORDERS.items()},
    "ours": ours_arm(OURS),
    "ours, without domains": unlabelled(ours_arm(OURS)),
    "random, without domains, our loss": unlabelled(ordered(ORDERS["random"], stand_for="domain")),
    "ours, InfoNCE": ours_arm(OURS, stand_for="batch"),
    "ours, two clusters": ours_arm([0.0, 0.5]),
    "ours, two clusters, InfoNCE": ours_arm([0.0, 0.5], stand_for="batch"),
    "ours, eight clusters": ours_arm([0.0, 0.125]),
    "ours, a cluster a batch": ours_arm([0.0, 1.0]),
    "ours, a cluster a batch, InfoNCE": ours_arm([0.0, 1.0], stand_for="batch"),
    "ours from the start": ours_arm([HARD]),
    "ours, last quarter": ours_arm([0.0, 0.0, 0.0, HARD]),
    "ours from a quarter on": ours_arm([0.0, HARD, HARD, HARD]),
    "ours, one clustering": ours_arm(OURS, draws=1),
    "ours, margin": ours_arm(OURS, "margin"),
    "ours, no masks": ours_arm(OURS, "nothing"),
    "ours, own vectors": replace(ours_arm(OURS), batches=reclustered, watches=True),
    "all documents": Arm(batches=all_documents, loss=all_documents_loss),
    "library": Arm(batches=no_duplicates, loss=ranking_loss),
    "library, GIST": Arm(batches=no_duplicates, loss=guided_loss),
    "library, mined": Arm(batches=mined, loss=ranking_loss),
    "library, minable pairs": Arm(batches=minable, loss=ranking_loss),
}
"""All mask known positives and duplicates, unless their name says otherwise; the library's mask what it masks. In our
loss, negatives stand for all documents of their domain; the others are InfoNCE."""
