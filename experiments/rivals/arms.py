"""The arms: how each makes batches, what it masks, and its loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.formats.shards.batch import stands_for
from batchwright.formats.vectors import blocks
from batchwright.training.losses import compare
from experiments.rivals.library import guided_loss, mined, no_duplicates, ranking_loss
from experiments.rivals.orders import HARD, ORDERS, Order, as_one, grouped, ours
from experiments.rivals.sets import Training
from experiments.rivals.training import Batch, Loss, Tempering, pairs_only
from stages.filter.rank import nearest
from stages.negatives.choice import Choice, Ranking, choose, draw_keys

MARGIN = np.float32(0.05)
OURS = [0.0, HARD]
MOST_POSITIVES = 100
"""Known positives of a query that may be among the first ranks when negatives are mined."""
Rows = NDArray[np.int64]
Mask = Callable[[Rows], NDArray[np.bool_]]
"""Takes the rows of a batch ``(B,)``; returns the mask ``(B, B)`` of documents j that are no negatives of query i."""
Rule = Callable[[Training], Mask]
StandFor = Literal["batch", "domain"]
"""See ``negatives_stand_for``."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """``batches`` takes the pairs, the number of epochs and a seed."""

    batches: Callable[[Training, int, int], Iterator[Batch]]
    loss: Callable[[Training], Loss]
    tempering: Tempering = "fixed"


def ours_arm(shares: list[float], rule: str = "known", stand_for: StandFor = "domain") -> Arm:
    """An arm with our batches and our loss; see ``grouped``."""
    return Arm(batches=partial(grouped, shares), loss=partial(masked_loss, RULES[rule], stand_for))


def ordered(order: Order, stand_for: StandFor = "batch") -> Arm:
    """An arm that only orders pairs."""

    def batches(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
        return pairs_only(order(training, epochs, seed))

    return Arm(batches=batches, loss=partial(masked_loss, known, stand_for))


def mining_arm(choice: Choice) -> Arm:
    """Random batches in which a pair also has a hard negative, if our stages choose one from what words rank high.

    Known positives and duplicates are none.
    """

    def batches(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
        found = choose_documents(training, choice, seed)
        print(f"{choice}: {np.mean(found >= 0):.2f} of {len(found)} pairs have a hard negative", flush=True)
        for rows in ORDERS["random"](training, epochs, seed):
            yield Batch(rows=rows, negatives=np.where(found[rows] >= 0, found[rows], rows))

    return Arm(batches=batches, loss=hard_loss)


def hard_loss(training: Training) -> Loss:
    """The project's InfoNCE, with a hard negative for each query; its own document means that there is none."""
    mask = known(training)

    def loss(queries: Tensor, documents: Tensor, batch: Batch, temperature: Tensor) -> Tensor:
        own, negatives = documents[: len(batch.rows)], documents[len(batch.rows) :, None]
        absent = torch.from_numpy(batch.negatives == batch.rows)[:, None]
        masked = torch.from_numpy(mask(batch.rows))
        scaled = queries / temperature
        return compare(scaled, own, masked.to(own.device), negatives, absent.to(own.device), 1.0).loss

    return loss


def choose_documents(training: Training, choice: Choice, seed: int) -> Rows:
    """Return the row whose document is the hard negative of each pair ``(N,)``, -1 if there is none."""
    _, first = np.unique(training.classes[1], return_index=True)
    chosen = []
    for block in blocks(len(training)):
        rows = np.arange(len(training))[block]
        scores, found = nearest(training.vectors.queries(block), training.vectors, first, choice.depth + MOST_POSITIVES)
        known = np.stack([known_cells(training, rows[[place]], own)[0] for place, own in enumerate(found)])
        ranking = Ranking.of(scores, found, known, training.vectors.scores()[block])
        keys = draw_keys(seed, map(str, rows))
        chosen.append(choose([ranking], [np.zeros_like(known)], choice, keys)[:, 0])
    return np.concatenate(chosen).astype(np.int64)


def unlabelled(arm: Arm) -> Arm:
    """The same arm if nobody had divided the pairs into domains."""
    return replace(
        arm,
        batches=lambda training, epochs, seed: arm.batches(as_one(training), epochs, seed),
        loss=lambda training: arm.loss(as_one(training)),
    )


def masked_loss(rule: Rule, stand_for: StandFor, training: Training) -> Loss:
    """The project's loss, with the masks of ``rule``; see ``negatives_stand_for``."""
    mask = rule(training)
    sizes = document_counts(training)

    def loss(queries: Tensor, documents: Tensor, batch: Batch, temperature: Tensor) -> Tensor:
        size = len(batch.rows)
        masked = torch.from_numpy(mask(batch.rows)).to(queries.device)
        groups = np.arange(size) if batch.groups is None else batch.groups
        each = queries.new_tensor(stands_for(groups, sizes[str(training.domains[batch.rows[0]])]))
        counts = each if stand_for == "domain" else None
        return contrast(queries, documents, masked, temperature, counts)

    return loss


def contrast(
    queries: Tensor, documents: Tensor, masked: Tensor, temperature: Tensor, counts: Tensor | None = None
) -> Tensor:
    """The project's InfoNCE of a batch without hard negatives; ``counts`` are its ``stands_for``."""
    none, absent = queries.new_empty(len(queries), 0, queries.shape[1]), masked[:, :0]
    return compare(queries / temperature, documents, masked, none, absent, 1.0, stands_for=counts).loss


def symmetric_loss(training: Training) -> Loss:
    """The mean of InfoNCE over documents and over queries, as CLIP has it."""
    mask = known(training)

    def loss(queries: Tensor, documents: Tensor, batch: Batch, temperature: Tensor) -> Tensor:
        masked = torch.from_numpy(mask(batch.rows)).to(queries.device)
        asked = contrast(queries, documents, masked, temperature)
        return (asked + contrast(documents, queries, masked.T, temperature)) / 2

    return loss


def nothing(_: Training) -> Mask:
    """Mask nothing."""
    return lambda rows: np.zeros((len(rows), len(rows)), dtype=np.bool_)


def known(training: Training) -> Mask:
    """Mask known positives and duplicates, without a score."""

    def mask(rows: Rows) -> NDArray[np.bool_]:
        positives = known_cells(training, rows, rows)
        np.fill_diagonal(positives, False)
        return positives

    return mask


def margin(training: Training) -> Mask:
    """Mask known positives, duplicates, and documents that the surrogate scores within a margin of the query's own."""
    certain = known(training)

    def mask(rows: Rows) -> NDArray[np.bool_]:
        scores = training.vectors.queries(rows) @ training.vectors.documents(rows).T
        near: NDArray[np.bool_] = scores >= scores.diagonal()[:, None] - MARGIN
        np.fill_diagonal(near, False)
        return near | certain(rows)

    return mask


RULES: dict[str, Rule] = {"nothing": nothing, "known": known, "margin": margin}


def known_cells(training: Training, rows: Rows, others: Rows) -> NDArray[np.bool_]:
    """Which documents of ``others`` ``(n,)`` are known to answer the queries of ``rows`` ``(B,)``, as ``(B, n)``.

    They are if any pair joins a duplicate of the query with a duplicate of the document.
    """
    width, edges = _edges(training)
    cells = training.classes[0, rows].astype(np.int64)[:, None] * width + training.classes[1, others]
    answers: NDArray[np.bool_] = edges[np.searchsorted(edges, cells).clip(max=len(edges) - 1)] == cells
    return answers


def document_counts(training: Training) -> dict[str, int]:
    """The number of different documents of each domain."""
    documents = training.classes[1]
    return {name: len(np.unique(documents[rows])) for name, rows in training.by_domain().items()}


@lru_cache(maxsize=4)
def _edges(training: Training) -> tuple[int, Rows]:
    """The number of classes of documents, and all pairs of a query's and a document's class as numbers, sorted."""
    queries, documents = training.classes.astype(np.int64)
    width = int(documents.max()) + 1
    return width, np.unique(queries * width + documents)


def all_documents(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
    """Our random batches, with one pair of each document as a further negative."""
    _, first = np.unique(np.array(training.documents), return_index=True)
    return (Batch(rows=rows, negatives=first) for rows in ours([0.0], training, epochs, seed))


def all_documents_loss(training: Training) -> Loss:
    """InfoNCE over the own document and all others that are not known to answer the query."""
    _, first = np.unique(np.array(training.documents), return_index=True)

    def loss(queries: Tensor, documents: Tensor, batch: Batch, temperature: Tensor) -> Tensor:
        rows = batch.rows
        own, others = documents[: len(rows)], documents[len(rows) :]
        scores = torch.cat([(queries * own).sum(1, keepdim=True), queries @ others.T], dim=1) / temperature
        answers = torch.from_numpy(known_cells(training, rows, first)).to(queries.device)
        scores[:, 1:] = scores[:, 1:].masked_fill(answers, -torch.inf)
        return torch.nn.functional.cross_entropy(scores, scores.new_zeros(len(rows), dtype=torch.int64))

    return loss


ARMS: dict[str, Arm] = {
    **{name: ordered(order) for name, order in ORDERS.items()},
    "random, our loss": ordered(ORDERS["random"], stand_for="domain"),
    "random, learned temperature": replace(ordered(ORDERS["random"]), tempering="learned"),
    "random, falling temperature": replace(ordered(ORDERS["random"]), tempering="falling"),
    "random, symmetric": replace(ordered(ORDERS["random"]), loss=symmetric_loss),
    "ours": ours_arm(OURS),
    "ours, learned temperature": replace(ours_arm(OURS, stand_for="batch"), tempering="learned"),
    "ours, without domains": unlabelled(ours_arm(OURS)),
    "random, without domains, our loss": unlabelled(ordered(ORDERS["random"], stand_for="domain")),
    "ours, InfoNCE": ours_arm(OURS, stand_for="batch"),
    "ours, two clusters": ours_arm([0.0, 0.5]),
    "ours, four clusters": ours_arm([0.0, 0.25]),
    "ours, a cluster a batch, InfoNCE": ours_arm([0.0, 1.0], stand_for="batch"),
    "ours, margin": ours_arm(OURS, "margin"),
    "ours, no masks": ours_arm(OURS, "nothing"),
    "all documents": Arm(batches=all_documents, loss=all_documents_loss),
    "library": Arm(batches=no_duplicates, loss=ranking_loss),
    "library, GIST": Arm(batches=no_duplicates, loss=guided_loss),
    "library, mined": Arm(batches=mined, loss=ranking_loss),
    "mined, hardest": mining_arm(Choice(count=1)),
    "mined, 95 %": mining_arm(Choice(count=1, max_share=0.95)),
    "mined, 95 %, drawn": mining_arm(Choice(count=1, max_share=0.95, sample=True)),
}
"""All mask known positives and duplicates, unless their name says otherwise; the library's mask what it masks. In our
loss, negatives stand for all documents of their domain; the others are InfoNCE."""
