"""Stage ``index``: an index of all documents for a model with one vector per token, and the command to search it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.core.names import Name
from batchwright.core.params import Params, load_params
from batchwright.core.paths import DATA, MODELS, PAIRS
from batchwright.formats.pairs import domains, read_pairs
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.index_folder import Kind
from batchwright.retrievers.xtr.rank import Imputation
from batchwright.retrievers.xtr.retriever import TokenRetriever

OUTPUT = DATA / "indexes"
TOKENS = "tokens"
DOCUMENTS = "documents.parquet"
SHOWN = 200
"""Characters of a document that a search shows."""


class IndexParams(Params):
    """Group ``index.NAME``."""

    run: Name
    """The run of the variant ``xtr`` that encodes the documents: an entry of ``runs``."""
    kind: Kind = "exact"
    """``exact`` keeps every vector; ``compressed`` a sixteenth of the bytes, and a search reads an eighth of them."""


def main(name: str) -> str:
    """Write ``data/indexes/NAME``: the tokens, and ``documents.parquet``, whose row n is document n."""
    params = load_params(f"index.{name}", IndexParams)
    retriever = open_retriever(params.run)
    documents = read_documents(PAIRS)
    vectors = retriever.encode_documents(documents["document"].to_pylist(), documents["domain"].to_pylist())
    index = TokenIndex.build(vectors.vectors, vectors.lengths, retriever.model_hash, params.kind)
    with atomic_dir(OUTPUT / name) as folder:
        index.save(folder / TOKENS)
        pq.write_table(documents, folder / DOCUMENTS, compression="zstd")
    return f"'{name}', {len(index):,} tokens of {index.documents:,} documents, {params.kind}"


def search(name: str, query: str, documents: int, tokens: int, imputation: Imputation) -> str:
    """Return the documents that an index finds, best first: rank, score, domain, id, and the beginning of the text.

    Raises:
        InputError: there is no such index, it is damaged or of another model, or a number is not positive.
    """
    if min(documents, tokens) < 1:
        raise InputError("--documents and --tokens must be at least 1")
    index = open_retriever(load_params(f"index.{name}", IndexParams).run).open(OUTPUT / name / TOKENS)
    numbers, scores = index.search([query], documents, tokens=tokens, imputation=imputation)
    rows = pq.read_table(OUTPUT / name / DOCUMENTS).take(numbers[0]).to_pylist()
    lines = [
        f"{place:3}. {score:.3f}  {row['domain']}  {row['id']}  {' '.join(row['document'].split())[:SHOWN]}"
        for place, (row, score) in enumerate(zip(rows, scores[0], strict=True), 1)
    ]
    return "\n".join([f"{len(rows)} of {index.tokens.documents:,} documents", *lines])


def open_retriever(run: str) -> TokenRetriever:
    """Load the model of a run.

    Raises:
        InputError: it is missing, or not of the variant ``xtr``.
    """
    info = ModelInfo.read(MODELS / run)
    if info.variant != "xtr":
        raise InputError(f"run '{run}' is of the variant {info.variant}; only models of the variant xtr are indexed")
    return TokenRetriever(MODELS / run, info)


def read_documents(pairs: Path) -> pa.Table:
    """Unique documents of all domains and splits, with id, domain and document, ordered by id."""
    unique: dict[str, tuple[str, str]] = {}
    for domain in domains(pairs):
        for document in read_pairs(pairs, domain)["document"].to_pylist():
            unique.setdefault(content_id(document), (domain, document))
    ids = sorted(unique)
    columns = {"id": ids, "domain": [unique[key][0] for key in ids], "document": [unique[key][1] for key in ids]}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
