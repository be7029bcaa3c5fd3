"""Batches: a browser of their texts, masks and hardest negatives, and a map of the clusters they are made of.

The page carries as many batches and as much of their texts as it has room for.
"""

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from batchwright.core.errors import InputError
from batchwright.core.paths import CLUSTERS, RESULTS, SHARDS, VECTORS
from batchwright.formats.clusters import Clusters, read_draws
from batchwright.formats.metadata import metadata_of
from batchwright.formats.shards import REASONS, ShardSet, read_reasons
from batchwright.formats.vectors import DomainVectors, Provenance, VectorStore
from stages.report.browser.batch import Texts, describe, evenly
from stages.report.browser.clusters import Examples, draw_map
from stages.report.page import TEMPLATES, Section
from stages.report.records import read_ingested, read_record

MOST_BATCHES = 2000
MOST_BYTES = 13_000_000
"""Of all data in the page."""
LENGTHS = (400, 200, 100)
"""Characters of a text: the first number with which the data is small enough."""


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


def section() -> Section:
    """Return the browser and the map, with as many batches and as much of their texts as the page can carry."""
    browser, data, length = _fit()
    shown, drawn, clusters = len(browser.rows), len(browser.clusters["x"]), browser.clusters["all"]
    omitted = "" if shown == browser.total else f" Of {browser.total:,} batches, the page has {shown:,}, evenly spaced."
    if browser.shared:
        omitted += f" The {browser.shared:,} batches that small domains share are not on the page."
    omitted_clusters = "" if drawn == clusters else f" Of {clusters:,} clusters, the map has {drawn:,}, evenly spaced."
    template = TEMPLATES.get_template("browser/browser.html.j2")
    return Section(
        id="batches",
        title="Batches",
        intro="The contextual batches, as training reads them. Point at a masked document, or at one of the hardest "
        f"negatives left, or move the focus there, to read it.{omitted} Texts are cut at {length} characters.",
        parts=[Markup(template.render(data=data, omitted_clusters=omitted_clusters))],
    )


def _fit() -> tuple[Browser, dict[str, str], int]:
    """Return the most that fits into the page, packed, and the length to which texts are cut."""
    clusterings = read_clusterings()
    for most in _halved(MOST_BATCHES):
        browser = read_browser(clusterings, most)
        data = {"batches": _pack(browser.batches), "rows": _pack(browser.rows), "clusters": _pack(browser.clusters)}
        for length in LENGTHS:
            data["texts"] = _pack(browser.texts.cut(length))
            if most == 1 or sum(map(len, data.values())) <= MOST_BYTES:
                return browser, data, length
    raise AssertionError("a single batch always fits")


def _halved(number: int) -> Iterator[int]:
    while number:
        yield number
        number //= 2


def _pack(values: Any) -> str:
    """Return ``values`` as compressed JSON in base64, which cannot end a script element; equal values, equal text."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 7, mtime=0)).decode()


def read_clusterings() -> dict[str, list[Clusters]]:
    """Read the clusterings of each domain."""
    domains = read_ingested().domains
    names = read_record(dict[str, dict[str, Any]], RESULTS / "cluster.json", made_by="cluster")
    return {name: read_draws(CLUSTERS, name, domains[name].train) for name in names}


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
    of_one_domain = [number for number, domain in enumerate(shards.domains()) if domain in clusterings]
    numbers = [of_one_domain[place] for place in evenly(len(of_one_domain), most)]
    first = [epoch.first_batch for epoch in shards.manifest.epochs]
    browser = Browser(
        total=len(of_one_domain),
        shared=len(shards) - len(of_one_domain),
        batches={"domains": names, "reasons": list(REASONS), "batch": numbers},
    )
    browser.batches |= {"epoch": (np.searchsorted(first, numbers, side="right") - 1).tolist()}
    examples, vectors = Examples(), {name: store.of(name) for name in names}
    for place, number in enumerate(numbers):
        batch = shards.batch(number)
        domain = batch["domain"][0].as_py()
        only = clusterings[domain][0] if len(clusterings[domain]) == 1 else None
        _add_batch(browser, examples, place, batch, vectors[domain], only)
    browser.clusters = draw_map({name: draws[0] for name, draws in clusterings.items()}, examples)
    return browser


def _add_batch(
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
    # Sums of products of float16 numbers are exact in float64: the same on every processor, in any number of threads.
    query = vectors.of("query", queries).astype(np.float64)
    document = vectors.of("document", documents).astype(np.float64)
    hardness = batch["hardness"].to_numpy()
    pairs = browser.texts.add(domain, batch["id"].to_pylist(), queries, documents, metadata_of(batch))
    browser.rows.append(describe(pairs, hardness, query @ document.T, read_reasons(batch)))
    for name, value in (
        ("domain", browser.batches["domains"].index(domain)),
        ("hardness", round(float(hardness.mean()), 4)),
        ("masked", round(float(batch["masked_share"].to_numpy().mean()), 5)),
    ):
        browser.batches.setdefault(name, []).append(value)
    if clusters is not None:
        numbers = batch["cluster"].to_numpy()
        centroids = clusters.centroids[numbers]
        closeness = np.einsum("bd,bd->b", query, centroids[:, 0]) + np.einsum("bd,bd->b", document, centroids[:, 1])
        examples.add(place, domain, numbers, pairs, closeness)
