"""``python -m stages.evaluate.tokens VARIANT``: held-out retrieval by tokens, by how many are retrieved."""

import argparse
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from formats.models import model_hash
from formats.params import load_params
from formats.results import write_tsv
from stages.entry import run
from stages.evaluate.collection import Collection, held_out, prefixed
from stages.evaluate.metrics import DEPTH, average, score_queries
from stages.evaluate.params import EvaluateParams
from stages.evaluate.tokens.ranks import shares_by_rank
from trainers.variants import load_variant
from trainers.xtr.encode import TokenVectors, encode_tokens
from trainers.xtr.impute import Imputation, score_retrieved
from trainers.xtr.index import TokenIndex
from trainers.xtr.model import load_token_model
from trainers.xtr.retrieve import rank

PAIRS = Path("data/pairs")
MODELS = Path("models")
RESULTS = Path("results/evaluate/tokens")

RETRIEVED = (3, 10, 30, 100, 300, 1000, 3000, 10_000, 40_000)
SHARE = 20
"""Of the index, the most that a query token retrieves: more is no longer retrieval, and takes long."""
RANKS = 100


def main() -> str:
    """Write ``VARIANT.tsv``, a row for each number of tokens and imputation, and ``VARIANT-ranks.tsv``."""
    parser = argparse.ArgumentParser(prog="python -m stages.evaluate.tokens")
    parser.add_argument("variant")
    name = parser.parse_args().variant
    params = load_params(f"train.{name}", load_variant(name).Params)
    collection = held_out(PAIRS, load_params("evaluate", EvaluateParams).held_out)
    model = load_token_model(MODELS / name, params.max_length)
    documents = encode_tokens(model, prefixed(collection.documents, "document", params.prefixes), "document")
    queries = encode_tokens(model, prefixed(collection.queries, "query", params.prefixes), "query")
    index = TokenIndex.build(documents.vectors, documents.lengths, model_hash(MODELS / name))
    rows = _measure(index, queries, collection)
    write_tsv(RESULTS / f"{name}.tsv", rows)
    write_tsv(RESULTS / f"{name}-ranks.tsv", _ranks(index, queries, documents, collection))
    last = {row["retrieved"]: row for row in rows if row["imputation"] == "last"}
    return f"{name}, nDCG@10 by tokens retrieved: " + ", ".join(
        f"{count:,} {row['ndcg@10']:.3f} ({row['imputed']:.0%} imputed)" for count, row in last.items()
    )


def _measure(index: TokenIndex, queries: TokenVectors, collection: Collection) -> list[dict[str, Any]]:
    """Tokens are retrieved once: the first ones of many are the few."""
    counts = [count for count in RETRIEVED if count * SHARE <= len(index)] or [len(index)]
    depth = min(DEPTH, index.documents)
    ranked: dict[tuple[int, Imputation], list[NDArray[np.int64]]] = {}
    shares: dict[int, list[tuple[float, int]]] = {}
    for similarities, numbers in index.retrieve(queries.vectors, queries.lengths, counts[-1]):
        owners = index.owners_of(numbers)
        for count in counts:
            first = similarities[:, :count], owners[:, :count]
            scored = score_retrieved(*first)
            shares.setdefault(count, []).append((scored.share, len(scored.documents)))
            for imputation in get_args(Imputation):
                ranked.setdefault((count, imputation), []).append(rank(*first, depth, imputation)[0])
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
    index: TokenIndex, queries: TokenVectors, documents: TokenVectors, collection: Collection
) -> list[dict[str, float]]:
    """Of what is retrieved at each rank, the shares of the query's own token and of relevant documents' tokens."""
    numbers = {document.id: number for number, document in enumerate(collection.documents)}
    relevant = [np.array([numbers[each] for each in collection.relevant[query.id]]) for query in collection.queries]
    found = (
        (documents.ids[tokens], index.owners_of(tokens))
        for _, tokens in index.retrieve(queries.vectors, queries.lengths, RANKS)
    )
    lexical, gold = shares_by_rank(found, np.split(queries.ids, np.cumsum(queries.lengths)[:-1]), relevant)
    return [
        {"rank": place + 1, "lexical": float(same), "gold": float(wanted)}
        for place, (same, wanted) in enumerate(zip(lexical, gold, strict=True))
    ]


if __name__ == "__main__":
    run("tokens", main)
