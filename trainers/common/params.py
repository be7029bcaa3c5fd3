"""Parameters that all variants share."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, create_model

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.formats.runs import (
    Direction,
    Distillation,
    HardnessMode,
    MiniBatchSize,
    PartitionMode,
    Precision,
    Run,
    StandFor,
)

T = TypeVar("T")


def _unlike(values: T) -> T:
    if isinstance(values, list) and len(set(values)) < len(values):
        raise ValueError("the same is there twice")
    return values


def _with_pairs(directions: list[Direction]) -> list[Direction]:
    if "query_to_document" not in directions:
        raise ValueError("add query_to_document, the direction of the pairs themselves")
    return directions


Dimensions = (
    Annotated[list[PositiveInt], Field(min_length=1)] | Annotated[dict[PositiveInt, PositiveFloat], Field(min_length=1)]
)


class Optimisation(Params):
    """AdamW with linear warm-up and linear decay to zero."""

    learning_rate: float = Field(default=2e-5, gt=0)
    """Peak learning rate, reached at the end of warm-up."""
    new_learning_rate: float | None = Field(default=None, gt=0)
    """Peak learning rate of parameters that the start model does not have; null: the same as ``learning_rate``."""
    warmup_ratio: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps during which the learning rate warms up."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Weight decay for weight matrices and embeddings; biases and norms do not decay."""
    max_grad_norm: float = Field(default=1, gt=0)
    """Gradients are clipped to this norm."""
    precision: Precision = "float32"
    """What the model computes in: ``float32``; ``tfloat32``, float32 whose products GPUs round, which is faster there;
    or ``bfloat16``, which is about twice as fast on many processors and GPUs (docs/scale.md). Weights,
    similarities, losses and sums of gradients are float32 in each."""
    dropout: float | None = Field(default=0, ge=0, lt=1)
    """Share of hidden states and attention weights that transformers drop in training; null: what the start model's
    configuration says. With another number of workers, or another ``mini_batch_size``, other ones are drawn."""


class DistillParams(Params):
    """Group ``train.common.distill``."""

    loss: Distillation = "kl"
    """How the scores of a query's document and hard negatives, divided by ``temperature`` of the variant, are compared
    with a teacher's: ``kl``, the KL divergence of their softmax from the teacher's, or ``margin_mse``, the squared
    difference of the document's margins over its hard negatives."""
    weight: float | None = Field(default=1, gt=0)
    """Factor of this loss beside the contrastive one; null: it alone."""
    temperature: float = Field(default=1, gt=0)
    """Divides the teacher's scores. Those of cross-encoders are logits, 1 to 5 suits them; cosines need about 0.05."""


class Common(Optimisation):
    """Group ``train.common``: what all runs share unless their entry in ``runs`` says otherwise."""

    epochs: int = Field(default=1, ge=1)
    """How many of the packed epochs to train on."""
    skip_epochs: int = Field(default=0, ge=0)
    """How many packed epochs to leave out at the beginning: a model that retrieves can do without the easy ones."""
    steps: int | None = Field(default=None, ge=1)
    """Stops training after this many steps; null trains on every batch of the epochs."""
    evaluate_every: int | None = Field(default=None, ge=1)
    """Measures nDCG@10 on the dev queries (``ingest.dev``) every so many steps, and at both ends; null: never."""
    domains: list[str] | None = Field(default=None, min_length=1)
    """Trains on the batches of these domains only; null: on all."""
    hard_negatives: int = Field(default=0, ge=0)
    """How many of a pair's own hard negatives to use, at most."""
    in_batch: bool = True
    """Whether the other documents of the batch are negatives, too. If not, a pair without hard negatives teaches
    nothing."""
    distill: DistillParams | None = None
    """Learns from a teacher's scores of the pairs and their ``hard_negatives``, which sources (``columns.scores``) or
    the stage ``teach`` give; null: from none."""
    negatives_stand_for: StandFor = "batch"
    """What the loss compares a query's document with: the other documents of the batch, or, through them, all documents
    of their domain. With ``domain``, the logarithm of how many documents each stands for is added to its score."""
    directions: Annotated[list[Direction], AfterValidator(_unlike), AfterValidator(_with_pairs)] = ["query_to_document"]
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
    dimensions: Annotated[Dimensions, AfterValidator(_unlike)] | None = None
    """Matryoshka: sums the losses of vectors cut to each of these dimensions, such as ``[64, 128, 256]``, or with
    weights, ``{64: 1, 256: 0.5}``. ``evaluate`` measures nDCG@10 at each. Not XTR; null: whole vectors."""
    mini_batch_size: MiniBatchSize = "auto"
    """Texts that go through the model at once (gradient cache): memory grows with it, the gradient stays the same.
    ``auto``: on a GPU as many as its memory allows, on a CPU as many as have 4,096 tokens (docs/scale.md)."""
    attention: Literal["auto", "padded"] = "auto"
    """``auto``: on a GPU, with ``precision: bfloat16`` and no dropout, transformers read texts one after the other,
    without padding, where they compute the same that way; T5 and MPNet do not. ``padded``: never."""
    compile: bool = False
    """Whether to compile the layers of transformers with ``torch.compile`` in the first steps; not with dropout, and
    not CDE."""

    @property
    def dimension_weights(self) -> dict[int, float] | None:
        """The weight of each of the ``dimensions``."""
        return dict.fromkeys(self.dimensions, 1.0) if isinstance(self.dimensions, list) else self.dimensions


class VariantParams(Params):
    """Parameters that every variant has."""

    temperature: float = Field(default=0.05, gt=0)
    """Divides the scores before the cross-entropy is computed."""

    def check(self, name: str, common: Common) -> None:
        """Check that the variant has what ``common`` asks for.

        Raises:
            InputError: it has not.
        """

    def models(self) -> list[Path]:
        """The folders of models that training reads beside its start model."""
        return []


def refuse(name: str, common: Common, options: Iterable[str], why: str) -> None:
    """Refuse ``options`` of the training ``name`` that are not at their defaults.

    Raises:
        InputError: one is not.
    """
    for option in options:
        if getattr(common, option) != Common.model_fields[option].default:
            raise InputError(f"train {name}: {option} does not go together with {why}")


SAME_SIDE = frozenset({"query_to_query", "document_to_document"})
"""Directions that compare no query with a document."""


def check_loss(name: str, common: Common) -> None:
    """Check that the options of the loss go together.

    Raises:
        InputError: they do not.
    """
    if not common.in_batch:
        why = "in_batch: false, which leaves nothing of the batch to compare with; set one of the two"
        refuse(name, common, ["negatives_stand_for", "directions"], why)
    if common.distill and not common.hard_negatives:
        why = "hard_negatives: 0, since it compares a query's document with its hard negatives; raise hard_negatives"
        refuse(name, common, ["distill"], why)
    if common.distill and common.distill.weight is None:
        why = "distill.weight: null, which leaves out the loss that it changes; give a weight, or remove it"
        refuse(name, common, ["negatives_stand_for", "directions", "hardness_strength"], why)
    if common.negatives_stand_for == "domain":
        why = (
            "negatives_stand_for: domain, which counts the documents that queries are compared with; set one of the two"
        )
        refuse(name, common, ["directions"], why)
    if common.partition_mode == "per_direction" and set(common.directions) & SAME_SIDE:
        why = f"{' and '.join(sorted(SAME_SIDE))}, whose sums lack the pair itself; set it to joint"
        refuse(name, common, ["partition_mode"], why)
    if common.hardness_mode == "hard_negatives" and not common.hard_negatives:
        why = "hardness_mode: hard_negatives and none of these; raise hard_negatives, or choose all_negatives"
        refuse(name, common, ["hardness_strength"], why)
    if common.hardness_mode == "in_batch_negatives" and not common.in_batch:
        why = "hardness_mode: in_batch_negatives and in_batch: false; choose all_negatives"
        refuse(name, common, ["hardness_strength"], why)


P = TypeVar("P", bound=Params)


def run_model(groups: Mapping[str, type[Params]]) -> type[Run]:
    """Return the model of a run that may override the parameters of ``groups``, by the groups' names in ``train``."""
    fields: dict[str, Any] = {}
    for group, model in groups.items():
        for name, field in model.model_fields.items():
            about = Field(description=f"Overrides ``train.{group}.{name}``.")
            fields.setdefault(name, (Annotated[field.annotation, about, *field.metadata], None))
    return create_model("Run", __base__=Run, __cls_kwargs__={"extra": "forbid"}, **fields)


def overridden(params: P, run: Run) -> P:
    """Return ``params`` with what the run itself says, null included; a ``run_model`` has checked it."""
    given = run.model_fields_set & set(type(params).model_fields)
    return params.model_copy(update={name: getattr(run, name) for name in given})
