"""Parameters of SEED-Encoder's fine-tuning."""

from typing import Literal

from trainers.common.params import VariantParams


class Params(VariantParams):
    """Group ``train.seed_encoder``."""

    loss: Literal["infonce", "hinge"] = "infonce"
    """The loss: masked InfoNCE, or the paper's hinge loss with margin 1."""
