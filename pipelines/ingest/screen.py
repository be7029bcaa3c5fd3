"""Removes hard negatives that answer their query after all."""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from batchwright.core.normal_form import normal_form
from pipelines.ingest.candidates import REJECTED
from pipelines.ingest.normalise import printable

REPEATED, POSITIVE = "negative: a duplicate of the document", "negative: answers the query in another pair"
REASONS = (REPEATED, POSITIVE)


def screen(pairs: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Remove the given negatives that repeat their pair's document, or a document that answers the same query.

    Texts are the same if their normal forms are, as in the stage ``filter``. ``pairs`` are all of a domain. Return them
    without these negatives, and the negatives as ``REJECTED``, with the rows that they came from.
    """
    lists = pairs["negatives"].to_pylist()
    having = [row for row, negatives in enumerate(lists) if negatives]
    if not having:
        return pairs, REJECTED.empty_table()
    queries = [normal_form(query) for query in pairs["query"].to_pylist()]
    asked = {queries[row] for row in having}
    answers: dict[str, set[str]] = defaultdict(set)
    own: dict[int, str] = {}
    for row, (query, document) in enumerate(zip(queries, pairs["document"], strict=True)):
        if query in asked:
            own[row] = normal_form(document.as_py())
            answers[query].add(own[row])
    rejected: list[dict[str, object]] = []
    for row in having:
        kept = []
        for negative in lists[row]:
            form = normal_form(negative)
            if form not in answers[queries[row]]:
                kept.append(negative)
                continue
            origin = {name: pairs[name][row].as_py() for name in ("entry", "part", "source", "row")}
            reason = REPEATED if form == own[row] else POSITIVE
            rejected.append({**origin, "reason": reason, "text": printable(negative)})
        lists[row] = kept
    place = pairs.schema.get_field_index("negatives")
    screened = pairs.set_column(place, "negatives", pa.array(lists, pairs.schema.field(place).type))
    return screened, pa.Table.from_pylist(rejected, schema=REJECTED)


def of_rows(rejected: pa.Table) -> pa.Table:
    """Return the rejects that are whole rows, not single negatives of them."""
    return rejected.filter(pc.invert(pc.is_in(rejected["reason"], pa.array(REASONS))))
