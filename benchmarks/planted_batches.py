"""Contextual shards and vectors of generated pairs, as the report reads them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from batchwright.core.fingerprint import content_id, text_keys
from batchwright.formats.pairs import file_stem
from batchwright.formats.prefixes import Prefixes
from batchwright.formats.shards import (
    REASONS,
    SHARD_SCHEMA,
    EpochSummary,
    Manifest,
    pack_mask,
    pack_reasons,
    shard_name,
    write_shard,
)
from batchwright.formats.shards.shard_set import SCHEMAS
from batchwright.formats.vectors import Provenance, write_domain_vectors, write_encoder

WIDTH = 16
VOCABULARY = 20_000
SEED = 17
_MEASURES: dict[str, Any] = {"hardness": 0.0, "unmasked_hardness": 0.0, "masked_share": 0.0, "masked_by": {}}


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


def make_batch(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Return a batch of some pairs, in which the first rows mask their neighbour, for each reason in turn."""
    size = len(rows)
    mask = np.zeros((size, size), bool)
    first = np.arange(min(len(REASONS), size - 1))
    mask[first, first + 1] = True
    reasons = pack_reasons(first.astype(np.uint8), mask)
    shares = (mask.sum(axis=1) / (size - 1)).tolist()
    own = [
        row | {"mask": bits, "reasons": why, "hardness": number / size, "masked_share": share}
        for number, (row, bits, why, share) in enumerate(zip(rows, pack_mask(mask), reasons, shares, strict=True))
    ]
    return pa.RecordBatch.from_pylist(own, schema=SHARD_SCHEMA)


def write_batches(folder: Path, batches: Sequence[pa.RecordBatch], epochs: int, shards: int = 1) -> None:
    """Write batches of one size, evenly to ``epochs`` and ``shards``, and a manifest without measures."""
    folder.mkdir(parents=True, exist_ok=True)
    each, size, most = len(batches) // epochs, len(batches[0]), -(-len(batches) // shards)
    parts = [batches[start : start + most] for start in range(0, len(batches), most)]
    summaries = [
        EpochSummary(first_batch=epoch * each, batches=each, left_over={}, repeated=0, met_before=0.0, **_MEASURES)
        for epoch in range(epochs)
    ]
    Manifest(
        format=1 if batches[0].schema == SCHEMAS[1] else 2,
        policy="contextual",
        batch_size=size,
        rows=len(batches) * size,
        batches=len(batches),
        seed=SEED,
        documents={name: len(texts) for name, texts in _documents(batches).items()},
        cluster_shares={name: [0.5 * (epoch % 2) for epoch in range(epochs)] for name in _documents(batches)},
        parameters={},
        models={},
        epochs=summaries,
        shards=[write_shard(folder / shard_name(number, len(parts)), part) for number, part in enumerate(parts)],
    ).write(folder)


def _documents(batches: Sequence[pa.RecordBatch]) -> dict[str, set[str]]:
    """The different documents of each domain."""
    found: dict[str, set[str]] = {}
    for batch in batches:
        for domain, document in zip(batch["domain"].to_pylist(), batch["document"].to_pylist(), strict=True):
            found.setdefault(domain, set()).add(document)
    return found
