"""The arms: how each makes batches, what it masks, and its loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.training.losses import compare
from experiments.rivals.library import TEMPERATURE, guided_loss, no_duplicates, ranking_loss
from experiments.rivals.limit import all_documents, all_documents_loss
from experiments.rivals.masks import RULES, Rule
from experiments.rivals.mining import mined
from experiments.rivals.orders import ORDERS
from experiments.rivals.ours import reclustered
from experiments.rivals.pairs import Training
from experiments.rivals.streams import Order
from experiments.rivals.training import Batch, Loss, pairs_only


@dataclass(frozen=True, kw_only=True)
class Arm:
    """``batches`` takes the pairs, the number of epochs and a seed; ``watches`` if it asks for ``Training.current``."""

    batches: Callable[[Training, int, int], Iterator[Batch]]
    loss: Callable[[Training], Loss]
    watches: bool = False


def masked_loss(rule: Rule, training: Training) -> Loss:
    """The project's loss, with the masks of ``rule``."""
    mask = rule(training)

    def loss(queries: Tensor, documents: Tensor, rows: NDArray[np.int64]) -> Tensor:
        none, absent = queries.new_empty(len(rows), 0, queries.shape[1]), torch.empty(len(rows), 0, dtype=torch.bool)
        return compare(queries, documents, torch.from_numpy(mask(rows)), none, absent, TEMPERATURE).loss

    return loss


def ordered(order: Order, rule: str) -> Arm:
    """An arm that only orders pairs."""

    def batches(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
        return pairs_only(order(training, epochs, seed))

    return Arm(batches=batches, loss=partial(masked_loss, RULES[rule]))


ARMS: dict[str, Arm] = {
    **{name: ordered(order, "known") for name, order in ORDERS.items()},
    "ours, margin": ordered(ORDERS["ours"], "margin"),
    "ours, no masks": ordered(ORDERS["ours"], "nothing"),
    "random, margin": ordered(ORDERS["random"], "margin"),
    "ours, own vectors": replace(ordered(reclustered, "known"), watches=True),
    "all documents": Arm(batches=all_documents, loss=all_documents_loss),
    "library": Arm(batches=no_duplicates, loss=ranking_loss),
    "library, GIST": Arm(batches=no_duplicates, loss=guided_loss),
    "library, mined": Arm(batches=mined, loss=ranking_loss),
}
"""All mask known positives and duplicates, unless their name says otherwise; the library's mask what it masks."""
