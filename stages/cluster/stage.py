"""Cluster the training pairs of each domain by their vectors."""

from pathlib import Path

import numpy as np

from batchwright.by_domain.domains import Metrics, do_domains, publish_domains
from batchwright.by_domain.spread import Map, unless_beam
from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.fingerprint import files_fingerprint
from batchwright.core.params import Base, load_params
from batchwright.core.paths import CLUSTERS, NEGATIVES, PAIRS, RESULTS, VECTORS
from batchwright.formats.clusters import NONE, Clusters
from batchwright.formats.negatives import KEPT, class_files, dropped_file, read_classes, read_dropped
from batchwright.formats.pairs import count_pairs, domains, pair_parts, pairs_file
from batchwright.formats.vectors import Provenance, VectorStore, blocks
from pipelines.beam.spread import spread
from stages.cluster.methods import METHODS, cells_at_a_time
from stages.cluster.params import ClusterParams
from stages.cluster.points import side_centroids

OUTPUT = RESULTS / "cluster.json"


def main() -> str:
    """Write ``data/clusters``, and a summary of the cluster sizes to ``results/cluster.json``."""
    params = load_params("cluster", ClusterParams)
    seed = load_params("base", Base).seed
    store = VectorStore.open(VECTORS / params.vectors)
    pairs = files_fingerprint([PAIRS])
    if Provenance.read(NEGATIVES, "filter").pairs != pairs:
        raise InputError(f"{NEGATIVES}: the pairs it was made from have changed; run the stage 'filter' again")

    def work(domain: str, folder: Path, do_parts: Map) -> Metrics:
        for draw in range(params.draws):
            seeds = range(seed + draw, seed + draw + params.draws * params.attempts, params.draws)
            clusters = max((_cluster_domain(domain, store, params, each, do_parts) for each in seeds), key=_hardness)
            clusters.write(folder, domain, draw)
        return _describe(clusters)

    settings = params.model_dump(), seed
    # Of the negatives, only duplicates and which pairs the filter kept matter: another margin changes no cluster.
    needed = {
        domain: [
            settings,
            files_fingerprint(
                [
                    *(pairs_file(PAIRS, domain), dropped_file(NEGATIVES, domain)),
                    *(*class_files(NEGATIVES, domain), store.files(domain)),
                ]
            ),
        ]
        for domain in domains(PAIRS)
    }
    done = do_domains(
        "cluster",
        Path(__file__).parent,
        work,
        needed,
        spread,
        pairs={domain: count_pairs(PAIRS, domain) for domain in needed},
        processes=cells_at_a_time(params),
    )
    source = Provenance(vectors=params.vectors, weights=store.weights, pairs=pairs, parameters=params.model_dump())
    publish_domains(done, source.write, CLUSTERS)
    metrics = {domain: of.metrics for domain, of in done.items()}
    write_json(OUTPUT, metrics)
    total, count = (sum(domain[key] for domain in metrics.values()) for key in ("pairs", "clusters"))
    return f"{total:,} pairs in {count:,} clusters of {len(metrics)} domains"


def _cluster_domain(domain: str, store: VectorStore, params: ClusterParams, seed: int, do_parts: Map) -> Clusters:
    do_lightly = unless_beam(do_parts)
    vectors = store.of(domain).of_pairs(pair_parts(PAIRS, domain, "train"), do_lightly)
    kept = np.flatnonzero(read_dropped(NEGATIVES, domain, len(vectors)) == KEPT)
    assignment = np.full(len(vectors), NONE, dtype=np.int32)
    # Pairs of one query or document would be masked as negatives of each other, and make no hard batch.
    repeated = [of for of in read_classes(NEGATIVES, domain, len(vectors)) if of.max(initial=-1) + 1 < len(of)]
    classes = np.stack([of[kept] for of in repeated]) if repeated else None
    assignment[kept] = METHODS[params.method](vectors.take(kept), params, seed, do_parts, classes)
    return Clusters(assignment=assignment, centroids=side_centroids(vectors, assignment, do_lightly))


def _hardness(clusters: Clusters) -> float:
    """Sum S_q.S_d over clusters (eq. 2), number by number in one order, so that all processors find the same."""
    found = 0.0
    for block in blocks(len(clusters.centroids)):
        queries, documents = clusters.centroids[block].astype(np.float64).swapaxes(0, 1)
        products = queries * documents * clusters.sizes[block, None].astype(np.float64) ** 2
        found += float(products.ravel().cumsum()[-1])
    return found


def _describe(clusters: Clusters) -> dict[str, int]:
    sizes = clusters.sizes
    return {
        "pairs": int(sizes.sum()),
        "clusters": len(sizes),
        "largest": int(sizes.max()),
        "median": int(np.median(sizes)),
        "smallest": int(sizes.min()),
    }
