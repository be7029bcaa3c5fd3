"""What query tokens retrieve, as text: appendix F of the XTR paper (arXiv 2304.01982)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import TokenVectors
from stages.scoring.collection import Collection

QUERIES = 3
SHOWN = 3
_AROUND = 5


def examples(
    index: TokenIndex, queries: TokenVectors, documents: TokenVectors, collection: Collection, tokenizer: Any
) -> list[dict[str, Any]]:
    """One row per token of the first ``QUERIES`` queries and rank up to ``SHOWN``.

    ``context`` is the retrieved token, in brackets, between its neighbours; ``gold`` is whether its document is
    relevant.
    """
    ends = np.cumsum(documents.lengths)
    asked = np.split(queries.ids, np.cumsum(queries.lengths)[:-1])[:QUERIES]
    count = sum(map(len, asked))
    found = index.retrieve(queries.vectors[:count], queries.lengths[:QUERIES], SHOWN)
    rows = []
    for query, own, (similarities, tokens) in zip(collection.queries, asked, found, strict=False):
        for place, rank in np.ndindex(tokens.shape):
            document = int(index.owners_of(tokens[place, rank, None])[0])
            text = documents.ids[ends[document] - documents.lengths[document] : ends[document]]
            at = int(tokens[place, rank] - ends[document] + documents.lengths[document])
            rows.append(
                {
                    "query": " ".join(query.text.split()),
                    "token": tokenizer.decode(own[place]),
                    "rank": rank + 1,
                    "similarity": round(float(similarities[place, rank]), 4),
                    "context": _marked(text, at, tokenizer),
                    "gold": collection.documents[document].id in collection.relevant[query.id],
                }
            )
    return rows


def _marked(ids: NDArray[np.int64], at: int, tokenizer: Any) -> str:
    parts: Sequence[NDArray[np.int64]] = (
        ids[max(at - _AROUND, 0) : at],
        ids[at : at + 1],
        ids[at + 1 : at + 1 + _AROUND],
    )
    before, token, after = (" ".join(tokenizer.decode(part).split()) for part in parts)
    return f"{before} [{token}] {after}".strip()
