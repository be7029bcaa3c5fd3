"""The arms: how each makes batches, what it masks, and its loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from batchwright.formats.shards.batch import stands_for
from batchwright.training.losses import PLAIN, Distill, Terms, compare, info_nce
from experiments.rivals.library import guided_loss, mined, no_duplicates, ranking_loss
from experiments.rivals.masks import RULES, Rule, known, known_cells
from experiments.rivals.negatives import (
    Teacher,
    score_alike,
    score_with_cross_encoder,
    score_with_minilm,
    taught,
    with_negatives,
)
from experiments.rivals.orders import HARD, ORDERS, Order, as_one, grouped, neighbouring, ours
from experiments.rivals.recipes import clustered_by_the_model, hard_in_part
from experiments.rivals.sets import Training
from experiments.rivals.training import Batch, Loss, Settings, Tempering, pairs_only
from stages.negatives.choice import Choice

OURS = [0.0, HARD]
FOUR = Choice(count=4, max_share=0.95)
SYMMETRIC = Terms(directions=("query_to_document", "document_to_query"), partition_mode="per_direction")
"""As CLIP has it."""
StandFor = Literal["batch", "domain"]
"""See ``negatives_stand_for``."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """``batches`` takes the pairs, the number of epochs and a seed; ``taught_by`` makes the same arm with a teacher.

    An arm with a ``temperature`` keeps it, whatever would be better. One that is ``untuned`` has the default settings.
    """

    batches: Callable[[Training, int, int], Iterator[Batch]]
    loss: Callable[[Training], Loss]
    tempering: Tempering = "fixed"
    temperature: float | None = None
    untuned: bool = False
    teacher: Teacher | None = None
    taught_by: Callable[[Teacher], "Arm"] | None = None

    def at(self, settings: Settings) -> "Arm":
        """The same arm, with its teacher's settings among ``settings``."""
        if self.teacher is None or self.taught_by is None:
            return self
        temperature, weight = self.teacher.temperature, self.teacher.weight
        return self.taught_by(
            replace(
                self.teacher,
                temperature=settings.teacher_temperature or temperature,
                weight=settings.teacher_weight or weight,
            )
        )


def ours_arm(shares: list[float], rule: str = "known", stand_for: StandFor = "domain") -> Arm:
    """An arm with our batches and our loss; see ``grouped``."""
    return Arm(batches=partial(grouped, shares), loss=partial(masked_loss, RULES[rule], stand_for))


def ordered(order: Order, stand_for: StandFor = "batch") -> Arm:
    """An arm that only orders pairs."""

    def batches(training: Training, epochs: int, seed: int) -> Iterator[Batch]:
        return pairs_only(order(training, epochs, seed))

    return Arm(batches=batches, loss=partial(masked_loss, known, stand_for))


def asking_a_model(batches: Callable[[Loss, Training, int, int], Iterator[Batch]]) -> Arm:
    """An arm with our loss whose ``batches`` ask a model that the same loss has trained."""
    loss = lru_cache(maxsize=1)(partial(masked_loss, known, "domain"))
    return Arm(batches=lambda training, epochs, seed: batches(loss(training), training, epochs, seed), loss=loss)


def mining(
    arm: Arm,
    choice: Choice = FOUR,
    teacher: Teacher | None = None,
    stand_for: StandFor = "batch",
    *,
    unasked: bool = False,
) -> Arm:
    """The same arm with hard negatives for each pair (``with_negatives``), and perhaps a teacher's scores of them."""
    return replace(
        arm,
        batches=lambda training, epochs, seed: with_negatives(
            choice, training, seed, arm.batches(training, epochs, seed), unasked=unasked
        ),
        loss=partial(masked_loss, known, stand_for, choice=choice, teacher=teacher),
        teacher=teacher,
        taught_by=lambda other: mining(arm, choice, other, stand_for),
    )


def unlabelled(arm: Arm) -> Arm:
    """The same arm if nobody had divided the pairs into domains."""
    return replace(
        arm,
        batches=lambda training, epochs, seed: arm.batches(as_one(training), epochs, seed),
        loss=lambda training: arm.loss(as_one(training)),
    )


def masked_loss(
    rule: Rule,
    stand_for: StandFor,
    training: Training,
    *,
    terms: Terms = PLAIN,
    choice: Choice | None = None,
    teacher: Teacher | None = None,
) -> Loss:
    """The project's loss, with the masks of ``rule``; see ``negatives_stand_for``.

    Of batches with the hard negatives of a ``choice``, it compares each query with its own ones.
    """
    mask, sizes, hard = rule(training), document_counts(training), choice.count if choice else 0
    scores = torch.from_numpy(taught(training, choice, teacher.score).scores) if choice and teacher else None
    distill = Distill(temperature=teacher.temperature, weight=teacher.weight) if teacher else None
    objective = partial(info_nce, terms=terms, distill=distill)

    def loss(queries: Tensor, documents: Tensor, batch: Batch, temperature: Tensor) -> Tensor:
        size = len(batch.rows)
        groups = np.arange(size) if batch.groups is None else batch.groups
        counts = queries.new_tensor(stands_for(groups, sizes[str(training.domains[batch.rows[0]])]))
        absent = batch.negatives[: size * hard].reshape(size, hard) == batch.rows[:, None]
        return compare(
            queries / temperature,
            documents[:size],
            torch.from_numpy(mask(batch.rows)).to(queries.device),
            documents[size : size + size * hard].reshape(size, hard, documents.shape[1]),
            torch.from_numpy(absent).to(queries.device),
            1.0,
            objective=objective,
            stands_for=counts if stand_for == "domain" else None,
            taught=None if scores is None else scores[torch.from_numpy(batch.rows)].to(queries.device),
        ).loss

    return loss


def document_counts(training: Training) -> dict[str, int]:
    """The number of different documents of each domain."""
    documents = training.classes[1]
    return {name: len(np.unique(documents[rows])) for name, rows in training.by_domain().items()}


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


RANDOM = ordered(ORDERS["random"])
OUR_LOSS = partial(masked_loss, known, "domain")
MINILM = Teacher(score=score_with_minilm, temperature=0.05)
NOTHING = Teacher(score=score_alike, temperature=1.0)
CROSS_ENCODER = Teacher(score=score_with_cross_encoder, temperature=1.0)
MORE_MASKS = ("margin", "alike", "alike, lower", "alike by MiniLM", "same group")
"""Masks of more than known positives and duplicates."""
MASKED: dict[str, tuple[Arm, StandFor]] = {
    "random": (RANDOM, "batch"),
    "random, our loss": (RANDOM, "domain"),
    "ours, InfoNCE": (ours_arm(OURS), "batch"),
    "ours": (ours_arm(OURS), "domain"),
}
"""The arms that are tried with them."""
ARMS: dict[str, Arm] = {
    **{name: ordered(order) for name, order in ORDERS.items()},
    "random, our loss": ordered(ORDERS["random"], stand_for="domain"),
    "random, temperature .05": replace(RANDOM, temperature=0.05),
    "random, learned temperature": replace(RANDOM, tempering="learned"),
    "random, falling temperature": replace(RANDOM, tempering="falling"),
    "random, symmetric": replace(RANDOM, loss=partial(masked_loss, known, "batch", terms=SYMMETRIC)),
    "ours": ours_arm(OURS),
    "ours, untuned": replace(ours_arm(OURS), untuned=True),
    "ours, untuned, .07": replace(ours_arm(OURS), untuned=True, temperature=0.07),
    "ours, learned temperature": replace(ours_arm(OURS, stand_for="batch"), tempering="learned"),
    "ours, without domains": unlabelled(ours_arm(OURS)),
    "ours, domains mixed": replace(
        ours_arm(OURS), batches=partial(grouped, OURS, mixed=True), loss=lambda training: OUR_LOSS(as_one(training))
    ),
    "random, without domains": unlabelled(ordered(ORDERS["random"])),
    "random, without domains, our loss": unlabelled(ordered(ORDERS["random"], stand_for="domain")),
    "ours, InfoNCE": ours_arm(OURS, stand_for="batch"),
    "ours, half random": replace(ours_arm(OURS), batches=partial(hard_in_part, None)),
    "ours, half random, confused": asking_a_model(hard_in_part),
    "ours, clusters by the model": asking_a_model(clustered_by_the_model),
    "ours, lower temperature late": replace(ours_arm(OURS), tempering="late"),
    "ours, neighbours": replace(ours_arm(OURS), batches=neighbouring),
    "ours, two clusters": ours_arm([0.0, 0.5]),
    "ours, four clusters": ours_arm([0.0, 0.25]),
    "ours, a cluster a batch, InfoNCE": ours_arm([0.0, 1.0], stand_for="batch"),
    "ours, no masks": ours_arm(OURS, "nothing"),
    **{
        f"{way}, {rule}": replace(arm, loss=partial(masked_loss, RULES[rule], stand_for))
        for way, (arm, stand_for) in MASKED.items()
        for rule in MORE_MASKS
    },
    "ours, same group, own cluster": ours_arm(OURS, "same group, own cluster"),
    "ours, same group, other clusters": ours_arm(OURS, "same group, other clusters"),
    "all documents": Arm(batches=all_documents, loss=all_documents_loss),
    "library": Arm(batches=no_duplicates, loss=ranking_loss),
    "library, GIST": Arm(batches=no_duplicates, loss=guided_loss),
    "library, mined": Arm(batches=mined, loss=ranking_loss),
    "mined, hardest": mining(RANDOM, Choice(count=1)),
    "mined, hardest, from a corpus": mining(RANDOM, Choice(count=1), unasked=True),
    "mined, 95 %": mining(RANDOM, Choice(count=1, max_share=0.95)),
    "mined, 95 %, drawn": mining(RANDOM, Choice(count=1, max_share=0.95, sample=True)),
    "mined, four": mining(RANDOM),
    "taught by MiniLM": mining(RANDOM, teacher=MINILM),
    "taught by a cross-encoder": mining(RANDOM, teacher=CROSS_ENCODER),
    "taught nothing": mining(RANDOM, teacher=NOTHING),
    "ours, mined, hardest": mining(ours_arm(OURS), Choice(count=1), stand_for="domain"),
    "ours, mined, hardest, from a corpus": mining(ours_arm(OURS), Choice(count=1), stand_for="domain", unasked=True),
    "ours, mined, hardest, InfoNCE": mining(ours_arm(OURS), Choice(count=1)),
    "ours, taught by MiniLM": mining(ours_arm(OURS), teacher=MINILM, stand_for="domain"),
}
"""All mask known positives and duplicates, unless their name says otherwise; the library's mask what it masks. In our
loss, negatives stand for all documents of their domain; the others are InfoNCE."""
