"""Parameters of the packing stage."""

from typing import Annotated, Literal

from pydantic import Field

from formats.params import Params


class PackParams(Params):
    """Group ``pack``."""

    batch_size: int = Field(gt=1)
    """Pairs in a batch, over all workers."""
    epochs: int = Field(gt=0)
    """Passes over the pairs, each with batches of its own."""
    cluster_share: list[Annotated[float, Field(ge=0, le=1)]] = Field(default=[1.0], min_length=1)
    """The share of a contextual batch that comes from one cluster, epoch by epoch; the last holds for those after.

    1 makes the hardest batches, 0.5 batches of two clusters, 0 random ones: ``[0, 0, 1]`` begins with two
    random epochs.
    """
    left_over: Literal["drop", "refill"] = "drop"
    """What happens to the pairs that do not fill a batch: they wait for the next epoch, or the batch is filled
    with pairs that the epoch has used already."""
    weights: dict[str, Annotated[float, Field(gt=0)]] = {}
    """How often an epoch takes the pairs of a domain, 1 by default: 0.5 half of its batches, 2 all of them twice."""
    batches_per_shard: int = Field(gt=0)
