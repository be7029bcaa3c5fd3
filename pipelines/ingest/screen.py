"""Removes hard negatives that answer their query after all."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.core.fingerprint import content_id
from batchwright.core.normal_form import normal_form
from pipelines.ingest.normalise import printable

REPEATED, POSITIVE = "negative: a duplicate of the document", "negative: answers the query in another pair"
REASONS = (REPEATED, POSITIVE)

Answers = NDArray[np.uint64]
"""Sorted keys of a domain's pairs: 64 bits made of the normal forms of query and document."""


def answers_in(batches: Iterable[pa.RecordBatch]) -> Answers:
    """Return the keys of all pairs of a domain."""
    keys = [
        _key(normal_form(query.as_py()), normal_form(document.as_py()))
        for batch in batches
        for query, document in zip(batch["query"], batch["document"], strict=True)
    ]
    return np.unique(np.array(keys, dtype=np.uint64))


def screen(pairs: pa.Table, answers: Answers) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Remove the given negatives that repeat their pair's document, or a document that answers the same query.

    Texts are the same if their normal forms are, as in the stage ``filter``; ``answers`` are those of the whole domain.
    Return the pairs without these negatives, and the negatives as rejects with the rows that they came from.
    """
    lists = pairs["negatives"].to_pylist()
    rejected: list[dict[str, Any]] = []
    for row, negatives in enumerate(lists):
        if not negatives:
            continue
        query, document = (normal_form(pairs[side][row].as_py()) for side in ("query", "document"))
        lists[row] = []
        for negative in negatives:
            form = normal_form(negative)
            if not _holds(answers, _key(query, form)):
                lists[row].append(negative)
                continue
            origin = {name: pairs[name][row].as_py() for name in ("source", "row", "part")}
            reason = REPEATED if form == document else POSITIVE
            rejected.append({**origin, "reason": reason, "text": printable(negative)})
    place = pairs.schema.get_field_index("negatives")
    screened = pairs.set_column(place, "negatives", pa.array(lists, pairs.schema.field(place).type))
    return screened, rejected


def of_rows(rejected: pa.Table) -> pa.Table:
    """Return the rejects that are whole rows, not single negatives of them."""
    return rejected.filter(pc.invert(pc.is_in(rejected["reason"], pa.array(REASONS))))


def _key(query: str, document: str) -> np.uint64:
    return np.uint64(int(content_id(query, document)[:16], 16))


def _holds(answers: Answers, key: np.uint64) -> bool:
    place = int(np.searchsorted(answers, key))
    return place < len(answers) and bool(answers[place] == key)
