"""Parameters of XTR."""

from typing import Literal

from pydantic import Field

from trainers.common.params import VariantParams


class Params(VariantParams):
    """Group ``train.xtr``."""

    score: Literal["xtr", "colbert"] = "xtr"
    """How training scores a batch's documents: by their retrieved tokens (``xtr``) or by all tokens (``colbert``)."""
    k: int = Field(default=1024, ge=1)
    """How many document tokens of the batch each query token retrieves. With fewer, more documents are scored by a
    single token and beat the positive (docs/xtr.md)."""
    width: int | None = Field(default=None, ge=1)
    """Projects token vectors to this many dimensions, for a smaller index; null keeps those of the start model."""
