"""Parameters of CDE."""

from pydantic import Field

from trainers.common.params import VariantParams


class Params(VariantParams):
    """Group ``train.cde``."""

    context_documents: int = Field(ge=0)
    """J: documents of the batch that each text is read with; 0 makes a biencoder."""
    null_share: float = Field(default=0.005, ge=0, lt=1)
    """Share of the context vectors that the learned null vector replaces in training."""
    pool_prefix: bool = True
    """Whether the tokens of task prefixes count in the mean over a text's tokens."""
    context_reads_text: bool = True
    """Whether context vectors attend to the text; if not, their keys and values are computed once for all texts."""
