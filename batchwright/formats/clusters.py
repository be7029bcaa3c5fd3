"""Clusters: the cluster of each training pair of a domain, and the clusters' centroids."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.core.files import read_array
from batchwright.formats.pairs import file_stem

NONE = -1


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """One clustering of a domain.

    ``assignment`` ``(N,)`` int32 is the cluster of each training pair, or ``NONE`` if the filter dropped the pair.
    ``centroids`` ``(K, 2, d)`` float32 are the mean query vector and the mean document vector of each cluster.
    """

    assignment: NDArray[np.int32]
    centroids: NDArray[np.float32]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of members of each cluster, ``(K,)``."""
        return np.bincount(self.assignment[self.assignment != NONE], minlength=len(self.centroids))

    def write(self, folder: Path, domain: str, draw: int) -> None:
        """Write clustering number ``draw`` of a domain into the artifact's folder."""
        target = _place(folder, domain, draw)
        target.mkdir(parents=True, exist_ok=True)
        np.save(target / "assignment.npy", self.assignment.astype(np.int32, copy=False))
        np.save(target / "centroids.npy", self.centroids.astype(np.float32, copy=False))

    @classmethod
    def read(cls, folder: Path, domain: str, draw: int, pairs: int) -> "Clusters":
        """Read clustering number ``draw`` of a domain that has ``pairs`` training pairs."""
        target = _place(folder, domain, draw)
        assignment = read_array(target / "assignment.npy", np.int32, (pairs,), made_by="cluster", mapped=True)
        centroids = read_array(target / "centroids.npy", np.float32, (None, 2, None), made_by="cluster", mapped=True)
        if pairs and not NONE <= assignment.min() <= assignment.max() < len(centroids):
            raise InputError(
                f"{target}/assignment.npy: refers to a cluster outside the {len(centroids)} that exist; "
                "run the stage 'cluster' again"
            )
        return cls(assignment=assignment, centroids=centroids)


def read_draws(folder: Path, domain: str, pairs: int) -> list[Clusters]:
    """All clusterings of a domain, at least one."""
    draws = sum(1 for _ in (folder / file_stem(domain)).glob("*/assignment.npy"))
    return [Clusters.read(folder, domain, draw, pairs) for draw in range(max(draws, 1))]


def read_assignment(folder: Path, domain: str) -> NDArray[np.int32]:
    """The cluster of each training pair of a domain in its first clustering, or ``NONE``."""
    return read_array(_place(folder, domain, 0) / "assignment.npy", np.int32, (None,), made_by="cluster", mapped=True)


def _place(folder: Path, domain: str, draw: int) -> Path:
    return folder / file_stem(domain) / str(draw)
