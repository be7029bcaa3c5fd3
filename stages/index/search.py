"""The command ``python -m stages search NAME QUERY``: the documents that an index finds."""

import pyarrow.parquet as pq

from batchwright.core.errors import InputError
from batchwright.core.params import load_params
from batchwright.retrievers.xtr.rank import Imputation
from stages.index.params import IndexParams

_SHOWN = 200


def search(name: str, query: str, documents: int, tokens: int, imputation: Imputation) -> str:
    """The lines to print.

    Raises:
        InputError: there is no such index, it is damaged or of another model, or a number is not positive.
    """
    from stages.index.stage import DOCUMENTS, OUTPUT, TOKENS, open_retriever  # slow

    if min(documents, tokens) < 1:
        raise InputError("--documents and --tokens must be at least 1")
    index = open_retriever(load_params(f"index.{name}", IndexParams).run).open(OUTPUT / name / TOKENS)
    numbers, scores = index.search([query], documents, tokens=tokens, imputation=imputation)
    rows = pq.read_table(OUTPUT / name / DOCUMENTS).take(numbers[0]).to_pylist()
    lines = [
        f"{place:3}. {score:.3f}  {row['domain']}  {row['id']}  {' '.join(row['document'].split())[:_SHOWN]}"
        for place, (row, score) in enumerate(zip(rows, scores[0], strict=True), 1)
    ]
    return "\n".join([f"{len(rows)} of {index.tokens.documents:,} documents", *lines])
