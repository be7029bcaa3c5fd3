"""Measure held-out retrieval by tokens against the number of tokens retrieved."""

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from batchwright.core.files import write_tsv
from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, PAIRS, RESULTS
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import TokenVectors
from batchwright.retrievers.xtr.rank import Imputation, collect, rank
from batchwright.retrievers.xtr.retriever import TokenRetriever
from stages.scoring.collection import Collection, held_out
from stages.scoring.measures import DEPTH, average, score_queries
from stages.scoring.params import EvaluateParams
from stages.tokens.examples import examples
from stages.tokens.ranks import shares_by_rank

OUTPUT = RESULTS / "tokens"

RETRIEVED = (3, 10, 30, 100, 300, 1000, 3000, 10_000, 40_000)
SHARE = 20
"""A query token retrieves at most 1 in ``SHARE`` tokens of the index: more is slow, and hardly retrieval any more."""
RANKS = 100
QUERIES = 300
"""Retrieving many tokens is slow, and so many queries are enough for curves."""


def main(run: str) -> str:
    """Write ``results/tokens/RUN.tsv``, one row per number of tokens and imputation, ``RUN-ranks.tsv``, and
    ``RUN-examples.tsv``."""
    asked_for = load_params("evaluate", EvaluateParams).held_out
    fewer = asked_for.model_copy(update={"queries": min(asked_for.queries, QUERIES)})
    collection = held_out(PAIRS, fewer)
    folder = MODELS / run
    retriever = TokenRetriever(folder, ModelInfo.read(folder))
    asked, searched = collection.queries, collection.documents
    documents = retriever.encode_documents([each.text for each in searched], [each.domain for each in searched])
    queries = retriever.encode_queries([each.text for each in asked], [each.domain for each in asked])
    index = TokenIndex.build(documents.vectors, documents.lengths, retriever.model_hash)
    rows = _measure(index, queries, collection)
    write_tsv(OUTPUT / f"{run}.tsv", rows)
    write_tsv(OUTPUT / f"{run}-ranks.tsv", _ranks(index, queries, documents.ids, collection))
    shown = examples(index, queries, documents, collection, retriever.model.tokenizer)
    write_tsv(OUTPUT / f"{run}-examples.tsv", shown)
    last = {row["retrieved"]: row for row in rows if row["imputation"] == "last"}
    return f"{run}, nDCG@10 by tokens retrieved: " + ", ".join(
        f"{count:,} {row['ndcg@10']:.3f} ({row['imputed']:.0%} imputed)" for count, row in last.items()
    )


def _measure(index: TokenIndex, queries: TokenVectors, collection: Collection) -> list[dict[str, Any]]:
    """Return one row of measures per number of tokens and imputation.

    Tokens are retrieved only once, for the largest number; the smaller numbers use the first of them.
    """
    counts = [count for count in RETRIEVED if count * SHARE <= len(index)] or [len(index)]
    ranked: dict[tuple[int, Imputation], list[NDArray[np.int64]]] = {}
    shares: dict[int, list[tuple[float, int]]] = {}
    for similarities, numbers in index.retrieve(queries.vectors, queries.lengths, counts[-1]):
        owners = index.owners_of(numbers)
        for count in counts:
            retrieved = collect(similarities[:, :count], owners[:, :count])
            shares.setdefault(count, []).append((retrieved.imputed_share, len(retrieved.documents)))
            for imputation in get_args(Imputation):
                best = rank(retrieved, DEPTH, imputation)[0]
                none = np.full(DEPTH - len(best), -1)
                ranked.setdefault((count, imputation), []).append(np.concatenate([best, none]))
    rows = []
    for (count, imputation), found in ranked.items():
        imputed, candidates = np.mean(shares[count], axis=0).tolist()
        by_query = score_queries(collection, np.array(found))
        measures = average(by_query, by_query)
        rows.append(
            {"retrieved": count, "imputation": imputation, **measures, "imputed": imputed, "candidates": candidates}
        )
    return rows


def _ranks(
    index: TokenIndex, queries: TokenVectors, ids: NDArray[np.int64], collection: Collection
) -> list[dict[str, float]]:
    """Return the shares of lexical and of gold tokens at each rank; ``ids`` ``(T,)`` are the index's."""
    numbers = {document.id: number for number, document in enumerate(collection.documents)}
    relevant = [np.array([numbers[each] for each in collection.relevant[query.id]]) for query in collection.queries]
    found = (
        (ids[tokens], index.owners_of(tokens)) for _, tokens in index.retrieve(queries.vectors, queries.lengths, RANKS)
    )
    lexical, gold = shares_by_rank(found, np.split(queries.ids, np.cumsum(queries.lengths)[:-1]), relevant)
    return [
        {"rank": place + 1, "lexical": float(same), "gold": float(wanted)}
        for place, (same, wanted) in enumerate(zip(lexical, gold, strict=True))
    ]
