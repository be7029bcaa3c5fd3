"""Parameters of the clustering stage."""

from typing import Literal

from pydantic import Field

from formats.params import Params


class ClusterParams(Params):
    """Group ``cluster``."""

    vectors: str
    """Which of ``embed.models`` stands in for phi and psi."""
    method: Literal["balanced", "sum", "joint", "swapped", "mirrored"] = "balanced"
    """``balanced`` is ours; the others are baselines (docs/batches.md)."""
    cluster_size: int = Field(gt=0)
    """Pairs a cluster: on average, and exactly with ``balanced`` but for the last few pairs, which join the nearest."""
    iterations: int = Field(gt=0)
    """Lloyd steps of K-Means at most."""
    resident_pairs: int = Field(default=100_000, gt=0)
    """Pairs whose vectors are in memory at a time, about 24 d bytes each."""
    draws: int = Field(default=1, gt=0)
    """Independent clusterings; epoch e packs draw e modulo ``draws``."""
