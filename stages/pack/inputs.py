"""Opening what packing reads."""

from dataclasses import dataclass
from pathlib import Path

from formats.clusters import Clusters
from formats.fingerprint import files_fingerprint
from formats.negatives import Negatives
from formats.pairs import domains, read_pairs
from formats.source import Source
from formats.vectors import VectorStore
from stages.pack.domain import Domain
from stages.pack.masks import KnownPositives

PAIRS = Path("data/pairs")
VECTORS = Path("data/vectors")
CLUSTERS = Path("data/clusters")
NEGATIVES = Path("data/negatives")


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All domains; ``models`` are the weights' hashes, ``fingerprint`` changes with any content or with this code."""

    domains: dict[str, Domain]
    clusters: dict[str, Clusters]
    models: dict[str, str]
    fingerprint: str


def open_inputs() -> Inputs:
    """Open pairs, vectors, clusters and negatives, checking that they belong together."""
    by_use = {"clusters": Source.read(CLUSTERS, "cluster"), "surrogate": Source.read(NEGATIVES, "filter")}
    stores = {use: VectorStore.open(VECTORS / source.vectors) for use, source in by_use.items()}
    opened, clusters = {}, {}
    for name in domains(PAIRS):
        pairs = read_pairs(PAIRS, name, "train")
        negatives = Negatives.read(NEGATIVES, name, len(pairs))
        clusters[name] = Clusters.read(CLUSTERS, name, len(pairs))
        opened[name] = Domain(
            pairs=pairs,
            negatives=negatives,
            known=KnownPositives(negatives),
            vectors=stores["clusters"].of(name),
            surrogate=stores["surrogate"].of(name),
        )
    models = {use: store.weights for use, store in stores.items()}
    content = files_fingerprint([PAIRS, CLUSTERS, NEGATIVES, Path(__file__).parent])
    return Inputs(domains=opened, clusters=clusters, models=models, fingerprint=content)
