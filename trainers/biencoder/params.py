"""Parameters of the biencoder."""

from pydantic import Field

from trainers.params import VariantParams


class Params(VariantParams):
    """Group ``train.biencoder``."""

    temperature: float = Field(gt=0)
