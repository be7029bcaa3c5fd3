"""Parameters of CDE."""

from pydantic import Field

from trainers.params import VariantParams


class Params(VariantParams):
    """Group ``train.cde``.

    ``model`` is what both stages start from. ``documents`` is J, how many context documents a text is read with; 0
    makes a biencoder. ``null_share`` of a batch's context vectors are replaced by the null vector in training. Without
    ``pool_prefix`` the tokens of prefixes stay out of the mean. Without ``context_reads_text`` the context does not
    depend on the text that is read with it, so its keys and values are computed once for all texts.
    """

    temperature: float = Field(gt=0)
    documents: int = Field(ge=0)
    null_share: float = Field(default=0.005, ge=0, lt=1)
    pool_prefix: bool = True
    context_reads_text: bool = True
