"""``python -m stages.cluster``: vectors to clusters, domain by domain."""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from formats.atomic import atomic_dir
from formats.clusters import Clusters
from formats.fingerprint import files_fingerprint
from formats.pairs import domains, read_pairs
from formats.params import Base, load_params
from formats.results import write_json
from formats.source import Source
from formats.vectors import VectorStore
from stages.cluster.kmeans import cluster_pairs, side_centroids
from stages.cluster.params import ClusterParams
from stages.entry import run

PAIRS = Path("data/pairs")
VECTORS = Path("data/vectors")
OUTPUT = Path("data/clusters")
METRICS = Path("results/cluster.json")


def main() -> str:
    """Write ``data/clusters`` and the sizes' extremes to ``results/cluster.json``."""
    params = load_params("cluster", ClusterParams)
    seed = load_params("base", Base).seed
    store = VectorStore.open(VECTORS / params.vectors)
    metrics = {}
    with atomic_dir(OUTPUT) as folder:
        for domain in tqdm(domains(PAIRS), desc="cluster", unit="domain", mininterval=2, delay=2):
            clusters = _cluster_domain(domain, store, params, seed)
            clusters.write(folder, domain)
            metrics[domain] = _describe(clusters)
        Source(vectors=params.vectors, weights=store.weights, pairs=files_fingerprint([PAIRS])).write(folder)
    write_json(METRICS, metrics)
    pairs, count = (sum(domain[key] for domain in metrics.values()) for key in ("pairs", "clusters"))
    return f"{pairs:,} pairs in {count:,} clusters of {len(metrics)} domains"


def _cluster_domain(domain: str, store: VectorStore, params: ClusterParams, seed: int) -> Clusters:
    pairs = read_pairs(PAIRS, domain, "train")
    vectors = store.of(domain)
    queries = vectors.of("query", pairs["query"].to_pylist())
    documents = vectors.of("document", pairs["document"].to_pylist())
    assignment = cluster_pairs(
        queries, documents, cluster_size=params.cluster_size, iterations=params.iterations, seed=seed
    )
    return Clusters(assignment=assignment, centroids=side_centroids(queries, documents, assignment))


def _describe(clusters: Clusters) -> dict[str, int]:
    sizes = clusters.sizes
    return {
        "pairs": len(clusters.assignment),
        "clusters": len(sizes),
        "largest": int(sizes.max()),
        "median": int(np.median(sizes)),
        "smallest": int(sizes.min()),
    }


if __name__ == "__main__":
    run("cluster", main)
