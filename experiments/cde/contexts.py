"""Asks a model with its own context, another corpus's and none."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.retrievers import load_retriever
from batchwright.retrievers.cde.contextual_encoder import Context
from batchwright.retrievers.cde.retriever import Contexts, ContextualIndex, ContextualRetriever
from batchwright.retrievers.common.retriever import Index
from stages.scoring.collection import Collection
from stages.scoring.measures import DEPTH, score_queries

NONE = "none"
OWN = "own"


def ask(model: Path, collection: Collection) -> dict[str, NDArray[np.float64]]:
    """nDCG@10 of each query ``(Q,)``, by context; a model that reads no context has only ``NONE``."""
    retriever = load_retriever(model)
    texts, domains = [each.text for each in collection.documents], [each.domain for each in collection.documents]
    index = retriever.index(texts, domains)
    indexes: dict[str, Index] = {NONE: index}
    if isinstance(retriever, ContextualRetriever) and isinstance(index, ContextualIndex):
        read = retriever.info.prefixes.put_before(texts, "document", domains)
        replaced: dict[str, Contexts] = {"another domain's": _others(index.contexts), NONE: {None: Context([])}}
        indexes = {OWN: index}
        for name, contexts in replaced.items():
            indexes[name] = ContextualIndex(retriever, contexts, retriever.encode(read, domains, contexts))
    return {name: _score(each, collection) for name, each in indexes.items()}


def _others(contexts: Contexts) -> Contexts:
    """The contexts of other domains: each gets that of the next one."""
    names = sorted(name for name in contexts if name is not None)
    return {None: contexts[None]} | {
        name: contexts[other] for name, other in zip(names, [*names[1:], *names[:1]], strict=True)
    }


def _score(index: Index, collection: Collection) -> NDArray[np.float64]:
    queries = collection.queries
    ranked, _ = index.search([each.text for each in queries], DEPTH, [each.domain for each in queries])
    scored = score_queries(collection, ranked)
    return np.array([scored[query.id]["ndcg@10"] for query in queries])
