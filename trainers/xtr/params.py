"""Parameters of XTR."""

from typing import Literal

from pydantic import Field

from trainers.params import VariantParams


class Params(VariantParams):
    """Group ``train.xtr``.

    ``score`` is by what a batch's documents are compared in training: ``xtr`` counts only the ``k`` tokens that each
    query token retrieves from the batch, ``colbert`` all of them.
    """

    temperature: float = Field(gt=0)
    score: Literal["xtr", "colbert"] = "xtr"
    k: int = Field(default=256, ge=1)
