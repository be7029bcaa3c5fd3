"""Index the documents of all pairs."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.core.params import load_params
from batchwright.core.paths import DATA, MODELS, PAIRS
from batchwright.formats.pairs import domains, read_pairs
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import TokenVectors
from batchwright.retrievers.xtr.retriever import TokenRetriever
from stages.index.params import IndexParams

OUTPUT = DATA / "indexes"
TOKENS = "tokens"
DOCUMENTS = "documents.parquet"


def main(name: str) -> str:
    """Write ``data/indexes/NAME``: the tokens, and ``documents.parquet``, whose row n is document n."""
    params = load_params(f"index.{name}", IndexParams)
    retriever = open_retriever(params.run)
    documents = read_documents(PAIRS)
    vectors = _encode(retriever, documents)
    index = TokenIndex.build(vectors.vectors, vectors.lengths, retriever.model_hash, params.kind)
    with atomic_dir(OUTPUT / name) as folder:
        index.save(folder / TOKENS)
        pq.write_table(documents, folder / DOCUMENTS, compression="zstd")
    return f"'{name}', {len(index):,} tokens of {index.documents:,} documents, {params.kind}"


def _encode(retriever: TokenRetriever, documents: pa.Table) -> TokenVectors:
    return retriever.encode_documents(documents["document"].to_pylist(), documents["domain"].to_pylist())


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
    found: dict[str, tuple[str, str]] = {}
    for domain in domains(pairs):
        for document in read_pairs(pairs, domain)["document"].to_pylist():
            found.setdefault(content_id(document), (domain, document))
    ids = sorted(found)
    columns = {"id": ids, "domain": [found[each][0] for each in ids], "document": [found[each][1] for each in ids]}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
