"""Open the inputs of packing."""

import resource
from dataclasses import dataclass
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import code_fingerprint, files_fingerprint, fingerprint
from batchwright.core.paths import CLUSTERS, NEGATIVES, PAIRS, VECTORS
from batchwright.formats.clusters import Clusters, read_draws
from batchwright.formats.negatives import EVERY_PAIR, Negatives
from batchwright.formats.pairs import domains, read_pairs
from batchwright.formats.provenance import Provenance
from batchwright.formats.vectors import VectorStore
from stages.pack.domain import Domain
from stages.pack.judge import Judge
from stages.pack.params import JudgeParams


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The inputs of all domains.

    ``models`` holds the hashes of model weights. ``fingerprint`` changes with the content of the inputs and the code.
    """

    domains: dict[str, Domain]
    clusters: dict[str, list[Clusters]]
    models: dict[str, str]
    fingerprint: str


def open_inputs(judging: JudgeParams | None) -> Inputs:
    """Open pairs, vectors, clusters and negatives, and check that they belong together.

    Raises:
        InputError: clusters or negatives were made from other pairs or vectors, or there is no such judge.
    """
    # Vector files stay open, one or two per domain, and the usual limit is 1,024.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    stores = {"clusters": _vectors_of(CLUSTERS, "cluster"), "surrogate": _vectors_of(NEGATIVES, "filter")}
    one_model = stores["clusters"] == stores["surrogate"]
    opened, clusters = {}, {}
    judge = Judge(judging) if judging else None
    for name in domains(PAIRS):
        pairs = read_pairs(PAIRS, name, "train")
        negatives = Negatives.read(NEGATIVES, name, len(pairs))
        if judge and negatives.likeness == EVERY_PAIR:
            raise InputError(
                "pack.judge: is asked about pairs near the limit of filter.likeness, which is null; "
                "set it to auto or a number, or remove pack.judge"
            )
        clusters[name] = read_draws(CLUSTERS, name, len(pairs))
        vectors = stores["clusters"].of(name).of_pairs(pairs)
        opened[name] = Domain(
            pairs=pairs,
            negatives=negatives,
            vectors=vectors,
            surrogate=vectors if one_model else stores["surrogate"].of(name).of_pairs(pairs),
            judge=judge,
        )
    models = {use: store.weights for use, store in stores.items()} | ({"judge": judge.weights} if judge else {})
    files = files_fingerprint([PAIRS, CLUSTERS, NEGATIVES])
    content = fingerprint(files, models, code_fingerprint(Path(__file__).parent))
    return Inputs(domains=opened, clusters=clusters, models=models, fingerprint=content)


def _vectors_of(folder: Path, stage: str) -> VectorStore:
    """Open the vectors that ``folder`` was made from; raise InputError if they or the pairs have changed since."""
    source = Provenance.read(folder, stage)
    store = VectorStore.open(VECTORS / source.vectors)
    if (source.weights, source.pairs) != (store.weights, files_fingerprint([PAIRS])):
        raise InputError(f"{folder}: the pairs or vectors it was made from have changed; run the stage '{stage}' again")
    return store
