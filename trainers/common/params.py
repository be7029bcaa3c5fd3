"""Parameters that all variants share."""

from pydantic import Field

from batchwright.core.params import Params


class Optimisation(Params):
    """AdamW with linear warm-up and linear decay to zero."""

    learning_rate: float = Field(gt=0)
    """The highest, at the end of warm-up."""
    warmup_ratio: float = Field(ge=0, lt=1)
    """Share of the steps in which the learning rate rises."""
    weight_decay: float = Field(ge=0)
    """Of matrices; biases and norms do not decay."""
    max_grad_norm: float = Field(gt=0)
    """Gradients are clipped to this norm."""


class Common(Optimisation):
    """Group ``train.common``: what all runs share unless their entry in ``runs`` says otherwise."""

    epochs: int = Field(ge=1)
    """How many of the packed epochs to train on."""
    steps: int | None = Field(default=None, ge=1)
    """Ends training earlier."""
    hard_negatives: int = Field(default=0, ge=0)
    """The most of a pair's own hard negatives that join its negatives."""
    mini_batch_size: int = Field(ge=1)
    """Texts that go through the model at once (gradient cache): memory grows with it, the gradient stays the same."""


class VariantParams(Params):
    """What every variant's group begins with."""

    temperature: float = Field(gt=0)
    """Divides the scores before the loss."""
