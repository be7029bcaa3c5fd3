"""Parameters that all variants share."""

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

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
    adam_epsilon: float = Field(default=1e-8, gt=0)
    """What AdamW adds to the root of a squared gradient's mean before it divides by it."""
    max_grad_norm: float = Field(default=1, gt=0)
    """Gradients are clipped to this norm."""
    precision: Precision = "float32"
    """What the model computes in: ``float32``; ``tfloat32``, float32 whose products GPUs round, which is faster there;
    or ``bfloat16``, which is about twice as fast on many processors and GPUs (docs/scale.md). Weights,
    similarities, losses and sums of gradients are float32 in each."""
    dropout: float | None = Field(default=0, ge=0, lt=1)
    """Share of hidden states and attention weights that transformers drop in training; null: what the start model's
    configuration says. With another number of workers, or another ``mini_batch_size``, other ones are drawn."""


class Lora(Params):
    """Group ``train.common.lora``: adapters beside the weights of transformers, which stay as they are."""

    rank: int = Field(default=16, ge=1)
    """Rank of an adapter's product of two matrices."""
    alpha: float = Field(default=32, gt=0)
    """What an adapter adds is multiplied by ``alpha / rank``."""
    dropout: float = Field(default=0, ge=0, lt=1)
    """Share of an adapter's inputs that is dropped in training."""
    targets: Literal["all-linear"] | Annotated[list[str], Field(min_length=1)] = "all-linear"
    """The layers with an adapter: all linear ones, or those of these names, such as ``[q_proj, v_proj]``."""


class Common(LossOptions, Optimisation):
    """Group ``train.common``: what all runs share unless their entry in ``runs`` says otherwise."""

    epochs: int = Field(default=1, ge=1)
    """How many of the packed epochs to train on."""
    skip_epochs: int = Field(default=0, ge=0)
    """How many packed epochs to leave out at the beginning."""
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
    lora: Lora | None = None
    """Trains adapters of low rank beside the weights of transformers, which stay as they are; other layers are trained
    whole. ``{}`` takes all defaults; adapters learn at ``learning_rate``, for which 1e-4 is usual. Adapters are merged
    into the saved model, and lie in its folder ``adapter``, too. Needs ``pip install peft``; null: no adapters."""
    weights: Literal["float32", "bfloat16"] = "float32"
    """What the weights of transformers are kept in. ``bfloat16`` takes half the memory, also in the saved model; only
    with ``precision: bfloat16`` and ``lora``, whose adapters stay float32, and not CDE."""
    checkpointing: bool = False
    """Whether to compute what is inside a layer of transformers again when it backpropagates, instead of keeping it:
    passes take less memory and more time. Not CDE."""
    fsdp: bool = False
    """Whether workers share matrices, their gradients and the optimiser's states (FSDP2), or, with ``lora``, the
    matrices that it leaves as they are: each keeps a part, and gathers a layer when it computes, in the ``precision``.
    A GPU need not hold the start model; a machine, where workers load it in turn, must, and the first must hold a
    checkpoint beside it. Needs ``mini_batch_size`` as a number; texts stay padded. Not CDE."""

    def check_memory(self, name: str) -> None:
        """Check that the training ``name`` can have ``lora``, ``weights`` and ``fsdp``.

        Raises:
            InputError: peft is not installed, or ``weights`` or ``fsdp`` lack what they need.
        """
        if self.lora and not importlib.util.find_spec("peft"):
            raise InputError(f"train {name}: lora needs the package peft; pip install peft, or set lora to null")
        if self.weights == "bfloat16" and not (self.lora and self.precision == "bfloat16"):
            raise InputError(
                f"train {name}: weights: bfloat16 needs lora, since small steps would be lost in it, and precision: "
                "bfloat16; set both, or weights to float32"
            )
        if self.fsdp and self.mini_batch_size == "auto":
            raise InputError(
                f"train {name}: fsdp needs mini_batch_size as a number, since all workers make the same passes; set "
                "it, or fsdp to false"
            )

    def shown(self) -> dict[str, Any]:
        """The parameters as model cards show them: those for large models only if they are not at their defaults."""
        fields = type(self).model_fields
        large = ("lora", "weights", "checkpointing", "fsdp")
        return self.model_dump(exclude={name for name in large if getattr(self, name) == fields[name].default})

    @property
    def drops(self) -> bool:
        """Whether transformers or adapters may drop anything."""
        return self.dropout != 0 or (self.lora is not None and self.lora.dropout != 0)

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

    def settled(self, name: str, start: Path, documents: Callable[[], Iterable[int]]) -> Self:  # noqa: ARG002
        """Return the same for the training ``name`` from ``start``, on domains of so many ``documents``.

        Raises:
            InputError: what is ``auto`` is not for this start model.
        """
        return self

    def models(self) -> list[Path]:
        """The folders of models that training reads beside its start model."""
        return []


def refuse(name: str, params: Params, options: Iterable[str], why: str) -> None:
    """Refuse ``options`` of the training ``name`` that are not at their defaults.

    Raises:
        InputError: one is not.
    """
    for option in options:
        if getattr(params, option) != type(params).model_fields[option].default:
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
