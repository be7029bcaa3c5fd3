"""Read the batches that the page carries, and the clusters they are made of."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from batchwright.core.errors import InputError
from batchwright.core.paths import CLUSTERS, SHARDS, VECTORS
from batchwright.formats.clusters import Clusters
from batchwright.formats.shards import REASONS, ShardSet, read_reasons
from batchwright.formats.vectors import DomainVectors, Provenance, VectorStore
from stages.report.browser.batch import describe
from stages.report.browser.clusters import Examples, draw_map
from stages.report.browser.evenly import evenly
from stages.report.browser.texts import Texts


@dataclass(kw_only=True)
class Browser:
    """What the page carries, of ``total`` batches of one domain, and not of those that small domains share.

    ``batches`` has one value per batch for each measure, ``rows`` one entry per batch.
    """

    total: int
    shared: int
    batches: dict[str, list[Any]]
    rows: list[dict[str, Any]] = field(default_factory=list)
    texts: Texts = field(default_factory=Texts)
    clusters: dict[str, Any] = field(default_factory=dict)


def read_browser(clusterings: dict[str, list[Clusters]], most: int) -> Browser:
    """Read at most ``most`` contextual batches of one domain each, evenly spaced in the order of training.

    Raises:
        InputError: there are no shards, or they were made by an older version.
    """
    shards = ShardSet.open(SHARDS / "contextual")
    if shards.manifest.format == 1:
        raise InputError(f"{shards.folder}: made by an older version; run the stage 'pack' again")
    store = VectorStore.open(VECTORS / Provenance.read(CLUSTERS, "cluster").vectors)
    names = list(clusterings)
    own = [number for number, domain in enumerate(shards.domains()) if domain in clusterings]
    numbers = [own[place] for place in evenly(len(own), most)]
    first = [epoch.first_batch for epoch in shards.manifest.epochs]
    browser = Browser(
        total=len(own),
        shared=len(shards) - len(own),
        batches={"domains": names, "reasons": list(REASONS), "batch": numbers},
    )
    browser.batches |= {"epoch": (np.searchsorted(first, numbers, side="right") - 1).tolist()}
    examples, vectors = Examples(), {name: store.of(name) for name in names}
    for place, number in enumerate(numbers):
        batch = shards.batch(number)
        domain = batch["domain"][0].as_py()
        one = clusterings[domain][0] if len(clusterings[domain]) == 1 else None
        _add(browser, examples, place, batch, vectors[domain], one)
    drawn = {name: draws[0] for name, draws in clusterings.items()}
    browser.clusters = draw_map(drawn, examples)
    return browser


def _add(
    browser: Browser,
    examples: Examples,
    place: int,
    batch: pa.RecordBatch,
    vectors: DomainVectors,
    clusters: Clusters | None,
) -> None:
    """Add a batch; with several clusterings of its domain, its rows say nothing about the clusters on the map."""
    domain = vectors.domain
    queries, documents = batch["query"].to_pylist(), batch["document"].to_pylist()
    query, document = vectors.of("query", queries), vectors.of("document", documents)
    hardness = batch["hardness"].to_numpy()
    pairs = browser.texts.add(domain, batch["id"].to_pylist(), queries, documents)
    browser.rows.append(describe(pairs, hardness, query @ document.T, read_reasons(batch)))
    for name, value in (
        ("domain", browser.batches["domains"].index(domain)),
        ("hardness", round(float(hardness.mean()), 4)),
        ("masked", round(float(batch["masked_share"].to_numpy().mean()), 5)),
    ):
        browser.batches.setdefault(name, []).append(value)
    if clusters is not None:
        own = batch["cluster"].to_numpy()
        centroids = clusters.centroids[own]
        closeness = np.einsum("bd,bd->b", query, centroids[:, 0]) + np.einsum("bd,bd->b", document, centroids[:, 1])
        examples.add(place, domain, own, pairs, closeness)
