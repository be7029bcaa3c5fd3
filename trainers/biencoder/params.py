"""Parameters of the biencoder."""

from trainers.common.params import VariantParams


class Params(VariantParams):
    """Group ``train.biencoder``."""
