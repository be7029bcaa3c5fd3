"""Write the scores of several systems: of each query, by domain, and overall."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.files import write_json, write_tsv
from batchwright.core.fingerprint import content_id
from batchwright.formats.query_scores import MEASURES, flaws, write_query_scores
from stages.scoring.collection import Collection, average, score_queries
from stages.scoring.measures import at_dimension
from stages.scoring.paired import estimate
from stages.scoring.retrieval import Ranked

EXAMPLES, SHOWN, LENGTH = 20, 3, 200
"""Queries whose first documents are shown, how many documents, and the characters of a text."""

Scored = dict[str, dict[str, float]]
"""Measures of each query."""


def write_scores(
    file: Path,
    queries: Path,
    systems: Mapping[str, Sequence[Callable[[Collection], NDArray[np.int64] | Ranked]]],
    collections: Sequence[Collection],
    measures: Sequence[str] = (),
) -> str:
    """Score every system, as trained with each of its seeds, on every collection; return a line with what was found.

    ``measures`` come beside those that are always there, and nDCG@10 by vectors cut to fewer dimensions, if ranked so.

    Writes averages to ``file`` (JSON), those by domain to its TSV file, and the scores of each query to ``queries``
    (Parquet), and what the systems of the first seed retrieve for some queries of the first collection to
    ``NAME-examples.tsv``.
    """
    more = [name for name in dict.fromkeys(measures) if name not in MEASURES]
    overall: dict[str, dict[str, dict[str, float]]] = {}
    by_domain: list[dict[str, Any]] = []
    by_query: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for collection in collections:
        for system, seeds in systems.items():
            found = [rank(collection) for rank in seeds]
            rankings = [each if isinstance(each, Ranked) else Ranked(each) for each in found]
            scored = [_score(collection, ranked, measures) for ranked in rankings]
            shown += examples(collection, system, rankings[0].whole) if collection is collections[0] else []
            more += [name for name in map(at_dimension, rankings[0].cut) if name not in more]
            overall.setdefault(collection.name, {})[system] = _overall(collection, scored)
            own = {"collection": collection.name, "system": system}
            by_domain += [own | row for row in _by_domain(collection, _means(scored), more)]
            by_query += [
                own | {"seed": place, "domain": query.domain, "query": query.id, **of_seed[query.id]}
                for place, of_seed in enumerate(scored, start=1)
                for query in collection.queries
            ]
    write_json(file, overall)
    write_tsv(file.with_suffix(".tsv"), by_domain)
    write_tsv(file.with_name(f"{file.stem}-examples.tsv"), shown)
    write_query_scores(queries, by_query, more)
    return _summary(collections, overall)


def _score(collection: Collection, ranked: Ranked, measures: Sequence[str]) -> Scored:
    scored = score_queries(collection, ranked.whole, measures)
    for dimension, rows in ranked.cut.items():
        for query, values in score_queries(collection, rows).items():
            scored[query][at_dimension(dimension)] = values["ndcg@10"]
    return scored


def _overall(collection: Collection, scored: Sequence[Scored]) -> dict[str, float]:
    """Averages, the standard error of nDCG@10, how many seeds and queries it counts, and its flaws."""
    ids = list(scored[0])
    error = estimate([[of_seed[query]["ndcg@10"] for query in ids] for of_seed in scored]).error
    return {
        **average(_means(scored), ids),
        **({"ndcg@10_error": round(error, 6)} if len(ids) > 1 else {}),
        "seeds": len(scored),
        "queries": len(ids),
        **collection.flaws,
    }


def _means(scored: Sequence[Scored]) -> Scored:
    """The means over seeds."""
    return {
        query: {name: sum(of_seed[query][name] for of_seed in scored) / len(scored) for name in measures}
        for query, measures in scored[0].items()
    }


def _by_domain(collection: Collection, scored: Scored, more: Sequence[str]) -> list[dict[str, Any]]:
    by_domain: dict[str, list[str]] = {}
    for query in collection.queries:
        by_domain.setdefault(query.domain, []).append(query.id)
    return [
        {"domain": domain, "queries": len(ids), **dict.fromkeys([*MEASURES, *more], ""), **average(scored, ids)}
        for domain, ids in sorted(by_domain.items())
    ]


def _summary(collections: Sequence[Collection], overall: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    first = collections[0].name
    parts = [
        f"nDCG@10 on {first.replace('_', '-')} queries: "
        + ", ".join(f"{name} {measures['ndcg@10']:.3f}" for name, measures in overall[first].items())
    ]
    for collection in collections:
        parts += flaws(collection.flaws, collection.name)
    return "; ".join(parts)


def examples(collection: Collection, system: str, ranked: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return the documents that a system ranks first for ``EXAMPLES`` queries, which are drawn by hash: a row each.

    ``ranked`` ``(Q, k)`` are the documents of each query, best first, -1 for none. The first relevant document has a
    row even if it is not among the first ``SHOWN``; it has none if it is not ranked at all.
    """
    drawn = sorted(range(len(collection.queries)), key=lambda number: content_id(collection.queries[number].id))
    rows = []
    for number in drawn[:EXAMPLES]:
        query = collection.queries[number]
        found = [collection.documents[each] for each in ranked[number].tolist() if each >= 0]
        relevant = [document.id in collection.relevant[query.id] for document in found]
        first = relevant.index(True) if any(relevant) else 0
        rows += [
            {
                "query": _cut(query.text),
                "system": system,
                "rank": place + 1,
                "relevant": int(relevant[place]),
                "document": _cut(found[place].text),
            }
            for place in sorted({*range(SHOWN), first})
            if place < len(found)
        ]
    return rows


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LENGTH else f"{line[: LENGTH - 1]}…"
