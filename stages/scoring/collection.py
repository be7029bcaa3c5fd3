"""Test collections: the held-out pairs, or a BEIR folder."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.formats.beir import BeirFolder
from batchwright.formats.pairs import domains, read_pairs
from stages.scoring.params import EvaluateParams, HeldOutParams


@dataclass(frozen=True, kw_only=True)
class Text:
    """A query or a document; its domain decides its prefix."""

    id: str
    text: str
    domain: str


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A test collection. ``relevant`` maps query ids to document ids and their relevance, which is at least 1."""

    name: str
    queries: list[Text]
    documents: list[Text]
    relevant: dict[str, dict[str, int]]


def read_collections(pairs: Path, params: EvaluateParams) -> list[Collection]:
    """Read the held-out pairs, then the BEIR folders."""
    return [held_out(pairs, params.held_out), *(beir(Path(folder)) for folder in params.beir)]


def held_out(pairs: Path, params: HeldOutParams) -> Collection:
    """Build a collection of held-out queries against documents, both from all domains.

    Queries come only from the held-out split, documents from both. Documents with the same text are one document.

    Raises:
        InputError: there are no held-out pairs.
    """
    queries: dict[str, Text] = {}
    documents: dict[str, Text] = {}
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    for domain in domains(pairs):
        table = read_pairs(pairs, domain).select(["query", "document", "split"])
        for query, document, split in zip(*table.to_pydict().values(), strict=True):
            document_id = content_id(document)
            documents.setdefault(document_id, Text(id=document_id, text=document, domain=domain))
            if split == "test":
                query_id = content_id(domain, query)
                queries[query_id] = Text(id=query_id, text=query, domain=domain)
                relevant[query_id][document_id] = 1
    if not queries:
        raise InputError(f"{pairs}: no held-out pairs to evaluate on; raise ingest.held_out")
    asked = [queries[query_id] for query_id in sorted(queries)[: params.queries]]
    wanted = {document_id for query in asked for document_id in relevant[query.id]}
    fill = [document_id for document_id in sorted(documents) if document_id not in wanted]
    chosen = sorted([*wanted, *fill[: max(params.documents - len(wanted), 0)]])
    return Collection(
        name="held_out",
        queries=asked,
        documents=[documents[document_id] for document_id in chosen],
        relevant={query.id: relevant[query.id] for query in asked},
    )


def beir(folder: Path) -> Collection:
    """Read the test split of a BEIR folder: queries with a relevant document, against the whole corpus.

    Raises:
        InputError: no query has a relevant document, or the corpus is empty.
    """
    source, name = BeirFolder(folder), folder.name
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    for query_id, document_id, grade in source.judgments():
        if grade > 0:
            relevant[query_id][document_id] = grade
    queries = [Text(id=key, text=text, domain=name) for key, text in source.queries() if key in relevant]
    documents = [Text(id=key, text=text, domain=name) for key, text in source.documents()]
    if not queries or not documents:
        raise InputError(f"{folder}: no judged queries, or no documents; check the query ids in qrels/test.tsv")
    return Collection(name=name, queries=queries, documents=documents, relevant=dict(relevant))
