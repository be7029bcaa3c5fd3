"""Stage ``tokens``: what a model with one vector per token retrieves by its tokens (XTR, arXiv 2304.01982)."""

from collections.abc import Iterable, Sequence
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
from stages.scoring.collection import DEPTH, Collection, EvaluateParams, average, held_out, score_queries

OUTPUT = RESULTS / "tokens"

RETRIEVED = (3, 10, 30, 100, 300, 1000, 3000, 10_000, 40_000)
SHARE = 20
"""A query token retrieves at most 1 in ``SHARE`` tokens of the index: more is slow, and hardly retrieval any more."""
RANKS = 100
QUERIES = 300
"""Retrieving many tokens is slow, and so many queries are enough for curves."""
EXAMPLES, SHOWN, AROUND = 3, 3, 5
"""Queries that serve as examples, the ranks shown of each of their tokens, and the neighbours on either side."""


def main(run: str) -> str:
    """Write ``results/tokens/RUN.tsv``, one row per number of tokens and imputation, ``RUN-ranks.tsv``, and
    ``RUN-examples.tsv``."""
    params = load_params("evaluate", EvaluateParams).held_out
    collection = held_out(PAIRS, params.model_copy(update={"queries": min(params.queries, QUERIES)}))
    folder = MODELS / run
    retriever = TokenRetriever(folder, ModelInfo.read(folder))
    asked, searched = collection.queries, collection.documents
    documents = retriever.encode_documents([each.text for each in searched], [each.domain for each in searched])
    queries = retriever.encode_queries([each.text for each in asked], [each.domain for each in asked])
    index = TokenIndex.build(documents.vectors, documents.lengths, retriever.model_hash)
    rows = measure(index, queries, collection)
    write_tsv(OUTPUT / f"{run}.tsv", rows)
    write_tsv(OUTPUT / f"{run}-ranks.tsv", _ranks(index, queries, documents.ids, collection))
    shown = examples(index, queries, documents, collection, retriever.model.tokenizer)
    write_tsv(OUTPUT / f"{run}-examples.tsv", shown)
    last = {row["retrieved"]: row for row in rows if row["imputation"] == "last"}
    return f"{run}, nDCG@10 by tokens retrieved: " + ", ".join(
        f"{count:,} {row['ndcg@10']:.3f} ({row['imputed']:.0%} imputed)" for count, row in last.items()
    )


def measure(index: TokenIndex, queries: TokenVectors, collection: Collection) -> list[dict[str, Any]]:
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
                padding = np.full(DEPTH - len(best), -1)
                ranked.setdefault((count, imputation), []).append(np.concatenate([best, padding]))
    rows = []
    for (count, imputation), of_queries in ranked.items():
        imputed, candidates = np.mean(shares[count], axis=0).tolist()
        by_query = score_queries(collection, np.array(of_queries))
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
    retrieved = (
        (ids[tokens], index.owners_of(tokens)) for _, tokens in index.retrieve(queries.vectors, queries.lengths, RANKS)
    )
    lexical, gold = shares_by_rank(retrieved, np.split(queries.ids, np.cumsum(queries.lengths)[:-1]), relevant)
    return [
        {"rank": place + 1, "lexical": float(same), "gold": float(wanted)}
        for place, (same, wanted) in enumerate(zip(lexical, gold, strict=True))
    ]


def shares_by_rank(
    retrieved: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]],
    queries: Sequence[NDArray[np.int64]],
    relevant: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares of lexical and of gold tokens among those retrieved at each of k ranks, ``(k,)`` each.

    A retrieved token is lexical if it equals the query token, and gold if it belongs to a relevant document (figure 4
    of the paper).

    Args:
        retrieved: For each query, the ids of the tokens that its n tokens retrieved and the numbers of their documents,
            ``(n, k)`` each.
        queries: For each query, the ids of its n tokens.
        relevant: For each query, the numbers of its relevant documents.
    """
    lexical, gold = [], []
    for (ids, documents), tokens, wanted in zip(retrieved, queries, relevant, strict=True):
        lexical.append(ids == tokens[:, None])
        gold.append(np.isin(documents, wanted))
    return np.concatenate(lexical).mean(axis=0), np.concatenate(gold).mean(axis=0)


def examples(
    index: TokenIndex, queries: TokenVectors, documents: TokenVectors, collection: Collection, tokenizer: Any
) -> list[dict[str, Any]]:
    """Return what query tokens retrieve as text, as in appendix F of the paper.

    There is one row per token of the first ``EXAMPLES`` queries and rank up to ``SHOWN``. ``context`` is the retrieved
    token, in brackets, between its neighbours; ``gold`` is whether its document is relevant.
    """
    ends = np.cumsum(documents.lengths)
    ids = np.split(queries.ids, np.cumsum(queries.lengths)[:-1])[:EXAMPLES]
    count = sum(map(len, ids))
    retrieved = index.retrieve(queries.vectors[:count], queries.lengths[:EXAMPLES], SHOWN)
    rows = []
    for query, of_query, (similarities, tokens) in zip(collection.queries, ids, retrieved, strict=False):
        for place, order in np.ndindex(tokens.shape):
            document = int(index.owners_of(tokens[place, order, None])[0])
            text = documents.ids[ends[document] - documents.lengths[document] : ends[document]]
            at = int(tokens[place, order] - ends[document] + documents.lengths[document])
            rows.append(
                {
                    "query": " ".join(query.text.split()),
                    "token": tokenizer.decode(of_query[place]),
                    "rank": order + 1,
                    "similarity": round(float(similarities[place, order]), 4),
                    "context": _marked(text, at, tokenizer),
                    "gold": collection.documents[document].id in collection.relevant[query.id],
                }
            )
    return rows


def _marked(ids: NDArray[np.int64], at: int, tokenizer: Any) -> str:
    parts: Sequence[NDArray[np.int64]] = (
        ids[max(at - AROUND, 0) : at],
        ids[at : at + 1],
        ids[at + 1 : at + 1 + AROUND],
    )
    before, token, after = (" ".join(tokenizer.decode(part).split()) for part in parts)
    return f"{before} [{token}] {after}".strip()
