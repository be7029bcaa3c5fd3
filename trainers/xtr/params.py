"""Parameters of XTR."""

from typing import Literal

from pydantic import Field

from trainers.common.params import VariantParams


class Params(VariantParams):
    """Group ``train.xtr``."""

    score: Literal["xtr", "colbert"] = "xtr"
    """How training scores a batch's documents: by the tokens retrieved (``xtr``) or by all tokens (``colbert``)."""
    k: int = Field(default=256, ge=1)
    """Tokens of the batch that each query token retrieves."""
