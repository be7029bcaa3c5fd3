"""Some queries as examples: what a system retrieves for them, as text."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import content_id
from stages.scoring.collection import Collection

QUERIES = 20
SHOWN = 3
LENGTH = 200
"""Characters of a text."""


def examples(collection: Collection, system: str, ranked: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return the documents that a system ranks first for ``QUERIES`` queries, which are drawn by hash: a row each.

    ``ranked`` ``(Q, k)`` are the documents of each query, best first, -1 for none. The first relevant document has a
    row even if it is not among the first ``SHOWN``; it has none if it is not ranked at all.
    """
    drawn = sorted(range(len(collection.queries)), key=lambda number: content_id(collection.queries[number].id))
    rows = []
    for number in drawn[:QUERIES]:
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
