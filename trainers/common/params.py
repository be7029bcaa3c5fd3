"""Parameters that all variants share."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, create_model

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.formats.loss_options import LossOptions, unlike
from batchwright.formats.runs import MiniBatchSize, Precision, Run, StandFor

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


class Common(LossOptions, Optimisation):
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
    negatives_stand_for: StandFor = "batch"
    """What the loss compares a query's document with: the other documents of the batch, or, through them, all documents
    of their domain. With ``domain``, the logarithm of how many documents each stands for is added to its score."""
    dimensions: Annotated[Dimensions, AfterValidator(unlike)] | None = None
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
