"""Parameters of pre-training."""

from typing import Annotated, Any, Literal

from pydantic import Field

from batchwright.core.params import Params, with_kind
from batchwright.formats.models import ModelVersion, Prefixes
from batchwright.formats.runs import MiniBatchSize
from trainers.common.params import Optimisation


class NewEncoder(Params):
    """An encoder with random weights and a vocabulary learned from the texts."""

    kind: Literal["new"] = "new"
    model_type: str = "bert"
    """A model type of transformers that has a masked language model."""
    config: dict[str, Any] = {}
    """Settings of that model type's configuration in transformers."""
    vocab_size: int = Field(default=32768, ge=1)
    """Maximum number of WordPieces in the vocabulary."""


class StartEncoder(ModelVersion):
    """Starts from a model: any encoder, or one that was pre-trained here.

    The latter keeps its decoder and head, and continues with the batches that follow its last one. Any other gets a new
    decoder and head, which learn at ``new_learning_rate``.
    """

    kind: Literal["start"] = "start"
    model: str
    """``package:NAME`` for an installed Python package, a folder such as ``raw/models/mine``, or a name on the hub."""
    prefixes: Prefixes | None = None
    """What runs that start from the result put before texts, as in ``start_models``; pre-training puts nothing."""


class Weak(Params):
    """SEED-Encoder's decoder: too weak to predict tokens without the encoder's vector."""

    kind: Literal["weak"] = "weak"
    layers: int = Field(default=3, ge=1)
    """Number of transformer layers."""
    window: int | None = Field(default=2, ge=1)
    """How many tokens each token attends to besides CLS, counting itself; null means all previous tokens."""


class Enhanced(Params):
    """RetroMAE's decoder: one layer that predicts every token, each from its own random selection of the others."""

    kind: Literal["retromae"]
    mask_ratio: float = Field(default=0.5, ge=0, lt=1)
    """Share of the other tokens that are hidden when the decoder predicts a token; drawn like dropout."""


class PretrainParams(Optimisation):
    """Group ``pretrain.NAME``: pre-trains the encoder ``models/start/NAME`` on the texts of all training pairs."""

    encoder: Annotated[
        NewEncoder | StartEncoder,
        Field(discriminator="kind"),
        with_kind(lambda entry: "start" if "model" in entry else "new"),
    ] = NewEncoder()
    """Where the encoder comes from: ``new`` or ``start``."""
    decoder: Annotated[Weak | Enhanced, Field(discriminator="kind"), with_kind(lambda _: "weak")] | None = None
    """The decoder: ``weak`` or ``retromae``; null trains the masked language model alone."""
    max_length: int = Field(default=128, ge=8)
    """Tokens per sequence, including CLS and SEP."""
    one_text: bool = True
    """Whether each sequence holds (part of) one text, as in retrieval; if not, short texts share sequences and CLS."""
    batch_size: int = Field(default=64, ge=1)
    """Sequences in a batch, over all workers."""
    mini_batch_size: MiniBatchSize = "auto"
    """Sequences that go through the model at once; memory use grows with it. ``auto`` as in ``train.common``."""
    steps: int = Field(default=10_000, ge=1)
    """Number of optimiser steps."""
    mlm_probability: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens that the encoder has to predict."""
    held_out: float = Field(default=0.02, gt=0, lt=1)
    """Share of the texts kept for validation."""
    validations: int = Field(default=10, ge=1)
    """Number of validations during training, evenly spaced; there is one more before the first step."""
