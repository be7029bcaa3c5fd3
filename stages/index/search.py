"""The command ``python -m stages.index.search NAME QUERY``: the documents that an index finds."""

from typing import get_args

import pyarrow.parquet as pq

from batchwright.core.command import keep_quiet, new_parser, run
from batchwright.core.errors import InputError
from batchwright.core.params import load_params
from batchwright.retrievers.xtr.impute import Imputation
from batchwright.retrievers.xtr.rank import TOKENS as RETRIEVED
from stages.index.params import IndexParams

_SHOWN = 200


def main() -> None:
    """Print the documents found, best first: rank, score, domain, id, and the beginning of the text."""
    parser = new_parser(
        "stages.index.search",
        "Searches an index that the stage index has made.",
        'python -m stages.index.search xtr "how do I parse a date?"',
    )
    parser.add_argument("name", help="an entry of index in params.yaml")
    parser.add_argument("query", help="the text to search for")
    parser.add_argument("--documents", type=int, default=10, help="how many documents to show (10)")
    parser.add_argument(
        "--tokens", type=int, default=RETRIEVED, help=f"how many tokens each query token retrieves ({RETRIEVED})"
    )
    parser.add_argument(
        "--imputation", choices=get_args(Imputation), default="last", help="what stands in for the others (last)"
    )
    given = parser.parse_args()
    keep_quiet()
    run("search", lambda: search(given.name, given.query, given.documents, given.tokens, given.imputation))


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


if __name__ == "__main__":
    main()
