"""Contextual shards and vectors of generated pairs, as the report reads them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from batchwright.core.fingerprint import content_id, text_keys
from batchwright.formats.models import Prefixes
from batchwright.formats.pairs import file_stem
from batchwright.formats.vectors import Provenance, write_domain_vectors, write_encoder
from benchmarks.planted import SEED, make_batch, write_batches

WIDTH = 16
VOCABULARY = 20_000


def plant_batches(
    data: Path, domains: Sequence[str], batches: int, *, size: int, clusters: int, words: int = 12, epochs: int = 2
) -> None:
    """Write ``data/shards/contextual`` with so many batches of ``size`` pairs an epoch, and ``data/vectors/small``.

    Batches take turns among the domains, and so do a domain's clusters among its pairs. A query has up to ``words``
    words and a document four times as many. The first rows of a batch mask their neighbour, for each reason in turn.
    """
    rng = np.random.default_rng(SEED)
    rows = {name: _pairs(name, -(-batches // len(domains)) * size, clusters, words, rng) for name in domains}
    store = data / "vectors/small"
    for name, own in rows.items():
        texts = sorted({text for row in own for text in (row["query"], row["document"])})
        vectors = rng.normal(size=(len(texts), WIDTH)) / np.sqrt(WIDTH)
        write_domain_vectors(store / file_stem(name), text_keys(texts), vectors.astype(np.float16))
    write_encoder(store, {"weights": "w", "prefixes": Prefixes().model_dump()})
    (data / "clusters").mkdir(parents=True, exist_ok=True)
    Provenance(vectors="small", weights="w", pairs="p").write(data / "clusters")
    made = []
    for _ in range(epochs):
        order = {name: rng.permutation(len(own)) for name, own in rows.items()}
        for number in range(batches):
            name, start = domains[number % len(domains)], number // len(domains) * size
            made.append(make_batch([rows[name][row] for row in order[name][start : start + size]]))
    write_batches(data / "shards/contextual", made, epochs)


def _pairs(domain: str, count: int, clusters: int, words: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    made = []
    for number in range(count):
        query, document = (
            " ".join(f"word{each}" for each in (rng.random(most) ** 4 * VOCABULARY).astype(int))
            for most in rng.integers(1, [words + 1, 4 * words + 1])
        )
        query = f"query {number} {query}"
        texts = {"id": content_id(domain, query), "query": query, "document": f"document {number} {document}"}
        made.append({**texts, "domain": domain, "negatives": [], "cluster": number % clusters})
    return made
