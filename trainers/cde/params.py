"""Parameters of CDE."""

from typing import Literal

from pydantic import Field

from trainers.common.params import VariantParams


class Params(VariantParams):
    """Group ``train.cde``."""

    context_documents: int = Field(ge=0)
    """J: how many context documents each text is embedded with, drawn from the batch; 0 makes a plain biencoder."""
    context_dropout: float = Field(default=0.1, ge=0, le=1)
    """Share of the steps that train without context, so that the model stays good without one."""
    first_stage: Literal["separate", "shared"] = "separate"
    """What embeds the context documents: ``separate``, an encoder with weights of its own, as in the paper; or
    ``shared``, the encoder that embeds texts."""
    pool_prefix: bool = True
    """Whether the mean over a text's tokens includes the tokens of its prefix."""
