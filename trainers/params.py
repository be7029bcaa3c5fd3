"""Parameters that all variants share."""

from pydantic import Field

from formats.params import Params
from formats.prefixes import Prefixes


class Optimisation(Params):
    """How any training steps; ``warm_up`` is a share of the steps."""

    learning_rate: float = Field(gt=0)
    warm_up: float = Field(ge=0, lt=1)
    weight_decay: float = Field(ge=0)
    clip: float = Field(gt=0)


class Common(Optimisation):
    """Group ``train.common``.

    ``epochs`` counts the packed epochs, ``steps`` ends training earlier. ``hard_negatives`` is how many of a
    pair's own negatives join its denominator at most. ``chunk`` is how many texts go through the model at once:
    memory grows with it, the gradient does not depend on it.
    """

    epochs: int = Field(ge=1)
    steps: int | None = Field(default=None, ge=1)
    hard_negatives: int = Field(default=0, ge=0)
    chunk: int = Field(ge=1)


class VariantParams(Params):
    """What each variant's group begins with: the model to start from and how it reads texts.

    ``learning_rate`` stands in for ``train.common``'s.
    """

    model: str
    revision: str | None = None
    max_length: int = Field(ge=2)
    prefixes: Prefixes = Prefixes()
    learning_rate: float | None = Field(default=None, gt=0)
