"""Parameters of fine-tuning a pre-trained encoder."""

from typing import Literal

from pydantic import Field

from trainers.params import VariantParams


class Params(VariantParams):
    """Group ``train.seed``.

    ``loss`` is masked InfoNCE or the paper's hinge with margin 1, of cosines divided by ``temperature``.
    """

    temperature: float = Field(gt=0)
    loss: Literal["infonce", "hinge"] = "infonce"
