"""Opening what packing reads."""

import resource
from dataclasses import dataclass
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import files_fingerprint
from batchwright.core.paths import CLUSTERS, NEGATIVES, PAIRS, VECTORS
from batchwright.formats.clusters import Clusters, read_draws
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import domains, read_pairs
from batchwright.formats.positives import KnownPositives
from batchwright.formats.provenance import Provenance
from batchwright.formats.vectors import VectorStore
from stages.pack.domain import Domain

_CODE = [Path(__file__).parent, Path(__file__).parents[2] / "formats"]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All domains; ``models`` are the weights' hashes, ``fingerprint`` changes with any content or with this code."""

    domains: dict[str, Domain]
    clusters: dict[str, list[Clusters]]
    models: dict[str, str]
    fingerprint: str


def open_inputs() -> Inputs:
    """Open pairs, vectors, clusters and negatives, checking that they belong together."""
    # Vectors stay open, a file or two a domain, and the usual limit is 1,024.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    stores = {"clusters": _vectors_of(CLUSTERS, "cluster"), "surrogate": _vectors_of(NEGATIVES, "filter")}
    one_model = stores["clusters"] == stores["surrogate"]
    opened, clusters = {}, {}
    for name in domains(PAIRS):
        pairs = read_pairs(PAIRS, name, "train")
        negatives = Negatives.read(NEGATIVES, name, len(pairs))
        clusters[name] = read_draws(CLUSTERS, name, len(pairs))
        vectors = stores["clusters"].of(name).of_pairs(pairs)
        opened[name] = Domain(
            pairs=pairs,
            negatives=negatives,
            known=KnownPositives(negatives),
            vectors=vectors,
            surrogate=vectors if one_model else stores["surrogate"].of(name).of_pairs(pairs),
        )
    models = {use: store.weights for use, store in stores.items()}
    content = files_fingerprint([PAIRS, CLUSTERS, NEGATIVES, *_CODE])
    return Inputs(domains=opened, clusters=clusters, models=models, fingerprint=content)


def _vectors_of(folder: Path, stage: str) -> VectorStore:
    """The vectors that the artifact ``folder`` was made from; they and the pairs must still be those."""
    source = Provenance.read(folder, stage)
    store = VectorStore.open(VECTORS / source.vectors)
    if (source.weights, source.pairs) != (store.weights, files_fingerprint([PAIRS])):
        raise InputError(f"{folder}: made from other pairs or vectors than are here now; run the stage '{stage}' again")
    return store
