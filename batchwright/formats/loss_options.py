"""The options of the contrastive loss, the same ones for all trainers, and which of them do not go together."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.formats.runs import StandFor

T = TypeVar("T")

Direction = Literal["query_to_document", "document_to_query", "query_to_query", "document_to_document"]
PartitionMode = Literal["joint", "per_direction"]
HardnessMode = Literal["in_batch_negatives", "hard_negatives", "all_negatives"]
Distillation = Literal["kl", "margin_mse"]

SAME_SIDE = frozenset({"query_to_query", "document_to_document"})
"""Directions that compare no query with a document."""


def unlike(values: T) -> T:
    """Refuse a list with the same value twice."""
    if isinstance(values, Sequence) and len(set(values)) < len(values):
        raise ValueError("the same is there twice")
    return values


def _with_pairs(directions: list[Direction]) -> list[Direction]:
    if "query_to_document" not in directions:
        raise ValueError("add query_to_document, the direction of the pairs themselves")
    return directions


class DistillParams(Params):
    """What is learned from a teacher: the group ``train.common.distill``."""

    loss: Distillation = "kl"
    """How the scores of a query's document and hard negatives, divided by ``temperature`` of the variant, are compared
    with a teacher's: ``kl``, the KL divergence of their softmax from the teacher's, or ``margin_mse``, the squared
    difference of the document's margins over its hard negatives."""
    weight: float | None = Field(default=1, gt=0)
    """Factor of this loss beside the contrastive one; null: it alone."""
    temperature: float = Field(default=1, gt=0)
    """Divides the teacher's scores. Those of cross-encoders are logits, 1 to 5 suits them; cosines need about 0.05."""


class LossOptions(Params):
    """Options of InfoNCE: part of the group ``train.common``, and of the losses for sentence-transformers."""

    in_batch: bool = True
    """Whether the other documents of the batch are negatives, too. If not, a pair without hard negatives teaches
    nothing."""
    distill: DistillParams | None = None
    """Learns from a teacher's scores of the pairs and their ``hard_negatives``, which sources (``columns.scores``) or
    the stage ``teach`` give; null: from none."""
    directions: Annotated[list[Direction], AfterValidator(unlike), AfterValidator(_with_pairs)] = ["query_to_document"]
    """What a pair's score is compared with: the query's scores with other documents, the document's with other queries,
    and those of queries, or of documents, among themselves. What is masked is masked in all directions."""
    partition_mode: PartitionMode = "joint"
    """``joint``: one softmax over all directions. ``per_direction``: the mean of one for each, which is the symmetric
    loss; not with ``query_to_query`` and ``document_to_document``."""
    hardness_mode: HardnessMode = "all_negatives"
    """The negatives that ``hardness_strength`` is for; ``hard_negatives`` are a pair's own."""
    hardness_strength: float = Field(default=0, ge=0)
    """Adds so many times a negative's cosine, without gradient, to its score, so that hard ones count more; 5 to 9 in
    the literature."""

    def check(self, where: str, hard_negatives: int, negatives_stand_for: StandFor) -> None:
        """Check that the options go together, for so many hard negatives at most.

        Raises:
            InputError: they do not; the message begins with ``where``.
        """
        changed = {name for name, field in LossOptions.model_fields.items() if getattr(self, name) != field.default}
        if negatives_stand_for != "batch":
            changed.add("negatives_stand_for")
        for applies, options, why in self._conflicts(hard_negatives, negatives_stand_for):
            for option in options if applies else ():
                if option in changed:
                    raise InputError(f"{where}: {option} does not go together with {why}")

    def _conflicts(self, hard_negatives: int, stand_for: StandFor) -> list[tuple[bool, list[str], str]]:
        """Rules: whether one applies, the options that must be at their defaults then, and why."""
        return [
            (
                not self.in_batch,
                ["negatives_stand_for", "directions"],
                "in_batch: false, which leaves nothing of the batch to compare with; set one of the two",
            ),
            (
                not hard_negatives,
                ["distill"],
                "hard_negatives: 0, since it compares a query's document with its hard negatives; raise hard_negatives",
            ),
            (
                self.distill is not None and self.distill.weight is None,
                ["negatives_stand_for", "directions", "hardness_strength"],
                "distill.weight: null, which leaves out the loss that it changes; give a weight, or remove it",
            ),
            (
                stand_for == "domain",
                ["directions"],
                "negatives_stand_for: domain, which counts the documents that queries are compared with; "
                "set one of the two",
            ),
            (
                bool({*self.directions} & SAME_SIDE),
                ["partition_mode"],
                f"{' and '.join(sorted(SAME_SIDE))}, whose sums lack the pair itself; set it to joint",
            ),
            (
                self.hardness_mode == "hard_negatives" and not hard_negatives,
                ["hardness_strength"],
                "hardness_mode: hard_negatives and none of these; raise hard_negatives, or choose all_negatives",
            ),
            (
                self.hardness_mode == "in_batch_negatives" and not self.in_batch,
                ["hardness_strength"],
                "hardness_mode: in_batch_negatives and in_batch: false; choose all_negatives",
            ),
        ]
