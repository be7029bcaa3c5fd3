"""What scoring takes of memory and disk, checked before texts are encoded."""

from collections.abc import Sequence
from pathlib import Path

from batchwright.core.paths import SCORES
from batchwright.core.room import check_disk, check_memory
from batchwright.formats.models import weights_size
from batchwright.formats.pairs import domains, pairs_size
from batchwright.retrievers import Retriever, load_retriever
from batchwright.retrievers.common.retriever import SAMPLE, searched_size
from stages.scoring.collection import Collection
from stages.scoring.measures import DEPTH
from stages.scoring.params import EvaluateParams
from stages.scoring.retrieval import BLOCK

_WORDS = 8
"""Bytes that BM25 takes for each byte of the documents: lists of words, and the index."""
_TEXTS, _READING = 1.5, 8
"""Bytes of texts in memory, with their ids, for each on disk; and of a row group of pairs that is read."""
_A_SCORE = 25
"""Bytes of the scores of a query."""


def check_texts(pairs: Path, params: EvaluateParams) -> None:
    """Check memory for the texts of all collections.

    Raises:
        InputError: there is too little.
    """
    sizes = [pairs_size(pairs, domain) for domain in domains(pairs)]
    count, texts = sum(size.pairs for size in sizes), sum(size.bytes for size in sizes)
    read = max((size.largest for size in sizes), default=0)
    files = [Path(folder, name) for folder in params.beir for name in ("corpus.jsonl", "queries.jsonl")]
    beir = sum(file.stat().st_size for file in files if file.exists())
    held_out = texts / max(count, 1) * min(params.held_out.documents, count)
    check_memory(_TEXTS * (held_out + beir) + _READING * read, "reading the collections")


def check_words(collections: Sequence[Collection]) -> None:
    """Check memory for BM25 to rank each collection.

    Raises:
        InputError: there is too little.
    """
    for collection in collections:
        size = sum(len(document.text.encode(errors="surrogatepass")) for document in collection.documents)
        check_memory(_WORDS * size, f"ranking the documents of {collection.name} by words")


def check_models(folders: Sequence[Path], collections: Sequence[Collection]) -> None:
    """Check memory for the model in each folder to search each collection.

    Raises:
        InputError: there is too little, or a model cannot be loaded.
    """
    for folder in folders:
        what = f"searching with '{folder}'"
        check_memory(weights_size(folder), what)
        retriever = load_retriever(folder)
        for collection in collections:
            check_memory(_searched(retriever, collection), what)


def check_scores(systems: int, collections: Sequence[Collection]) -> None:
    """Check disk for the scores of each query by each system.

    Raises:
        InputError: there is too little.
    """
    queries = sum(len(collection.queries) for collection in collections)
    check_disk({SCORES: _A_SCORE * systems * queries}, f"scores of {queries:,} queries")


def _searched(retriever: Retriever, collection: Collection) -> float:
    """Bytes besides those of the model that a search of a collection takes."""
    queries, documents = len(collection.queries), len(collection.documents)
    some = collection.documents[:: max(1, documents // SAMPLE)]
    texts, domains = [each.text for each in some], [each.domain for each in some]
    at_once, k = (queries, DEPTH) if collection.candidates is None else (min(queries, BLOCK), documents)
    return searched_size(retriever, texts, domains, documents=documents, queries=at_once, k=k)
