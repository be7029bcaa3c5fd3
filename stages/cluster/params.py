"""Parameters of the clustering stage."""

from typing import Literal

from pydantic import Field

from batchwright.core.params import Params


class ClusterParams(Params):
    """Group ``cluster``."""

    vectors: str
    """The entry of ``embed.models`` whose vectors are clustered."""
    method: Literal["balanced"] = "balanced"
    """How pairs are grouped: ``balanced`` makes clusters of equal size."""
    cluster_size: int = Field(default=16, gt=0)
    """Pairs per cluster: exact with ``balanced``, apart from a few left-over pairs."""
    iterations: int = Field(default=5, gt=0)
    """Maximum number of K-Means iterations."""
    resident_pairs: int = Field(default=100_000, gt=0)
    """Maximum number of pairs whose vectors are in memory at once, at about 24 bytes per pair and dimension."""
    draws: int = Field(default=1, gt=0)
    """Number of independent clusterings. Epochs rotate through them, so that they do not repeat the same batches."""
    attempts: int = Field(default=1, gt=0, exclude_if=lambda attempts: attempts == 1)
    """How often to make each clustering; the one with the hardest clusters is kept."""  # 1 is no part of manifests
