"""Parameters of the clustering stage."""

from pydantic import Field

from formats.params import Params


class ClusterParams(Params):
    """Group ``cluster``."""

    vectors: str
    """Which of ``embed.models`` stands in for phi and psi."""
    cluster_size: int = Field(gt=0)
    """Pairs a cluster on average: K = ceil(N / cluster_size)."""
    iterations: int = Field(gt=0)
    """Lloyd steps."""
