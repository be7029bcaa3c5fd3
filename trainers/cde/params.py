"""Parameters of CDE."""

from pydantic import Field

from trainers.common.params import VariantParams


class Params(VariantParams):
    """Group ``train.cde``."""

    context_documents: int = Field(ge=0)
    """J: how many context documents each text is embedded with, drawn from the batch; 0 makes a plain biencoder."""
    null_share: float = Field(default=0.005, ge=0, lt=1)
    """Share of the context vectors that are replaced by the learned null vector during training."""
    pool_prefix: bool = True
    """Whether the mean over a text's tokens includes the tokens of its prefix."""
    context_reads_text: bool = True
    """Whether context vectors attend to the text; if not, their keys and values are computed once for all texts."""
