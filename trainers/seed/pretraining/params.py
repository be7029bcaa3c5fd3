"""Parameters of pre-training."""

from typing import Annotated, Any, Literal

from pydantic import Field

from formats.params import Params
from trainers.params import Optimisation


class NewEncoder(Params):
    """An encoder with random weights and a vocabulary of its own.

    ``architecture`` is a model type of transformers that guesses masked tokens, ``options`` are settings of its
    configuration; ``vocabulary`` is the most WordPieces.
    """

    kind: Literal["new"]
    architecture: str = "bert"
    options: dict[str, Any] = {}
    vocabulary: int = Field(default=32768, ge=1)


class StartEncoder(Params):
    """Go on from a model: an encoder, or what pre-training wrote, then with its decoder and head as well, and with the
    batches that come after its last."""

    kind: Literal["start"]
    model: str
    revision: str | None = None


class Weak(Params):
    """SEED's decoder; without ``window`` it sees all tokens before."""

    kind: Literal["seed"]
    layers: int = Field(default=3, ge=1)
    window: int | None = Field(default=2, ge=1)


class Enhanced(Params):
    """RetroMAE's decoder; ``masked`` is the share of tokens that it does not see."""

    kind: Literal["retromae"]
    masked: float = Field(default=0.5, ge=0, lt=1)


class PretrainParams(Optimisation):
    """Group ``pretrain.seed``.

    ``length`` counts the tokens of a sequence, CLS and SEP among them; ``batch_size`` and ``chunk`` count sequences, of
    which ``chunk`` go through the model at once. ``masked`` is the share of tokens that the encoder has to guess.
    ``held_out`` of all texts are for validation, which takes place ``validations`` times, and once before training.
    Without ``decoder`` the loss is the encoder's alone (MLM).
    """

    encoder: Annotated[NewEncoder | StartEncoder, Field(discriminator="kind")]
    decoder: Annotated[Weak | Enhanced, Field(discriminator="kind")] | None = None
    length: int = Field(ge=8)
    batch_size: int = Field(ge=1)
    chunk: int = Field(ge=1)
    steps: int = Field(ge=1)
    masked: float = Field(default=0.15, gt=0, lt=1)
    held_out: float = Field(default=0.02, gt=0, lt=1)
    validations: int = Field(default=10, ge=1)
