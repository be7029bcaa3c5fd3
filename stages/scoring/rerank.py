"""Truncated collections: for each query, only what a first system finds is ranked."""

from dataclasses import replace

import numpy as np

from batchwright.core.errors import InputError
from stages.scoring.collection import Collection
from stages.scoring.retrieval import System


def truncate(collection: Collection, first: System) -> Collection:
    """Keep the documents that ``first`` finds for each query, and no others.

    What is relevant stays as it is: a relevant document that ``first`` does not find counts as not found.
    *Contextual Document Embeddings* (arXiv 2410.02525) evaluates small models so.

    Raises:
        InputError: it finds none at all.
    """
    ranked = first(collection)
    kept = np.unique(ranked[ranked >= 0])
    if not len(kept):
        raise InputError(
            f"{collection.name}: evaluate.rerank.first finds no document for any query, so there is nothing to rank; "
            "name another one"
        )
    numbers = {old: new for new, old in enumerate(kept.tolist())}
    return replace(
        collection,
        documents=[collection.documents[number] for number in kept],
        candidates=[[numbers[number] for number in row if number >= 0] for row in ranked.tolist()],
    )
