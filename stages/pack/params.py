"""Parameters of the packing stage."""

from pydantic import Field

from formats.params import Params


class PackParams(Params):
    """Group ``pack``."""

    batch_size: int = Field(gt=1)
    """Pairs in a batch, over all workers."""
    epochs: int = Field(gt=0)
    """Passes over the pairs, each with batches of its own."""
    batches_per_shard: int = Field(gt=0)
