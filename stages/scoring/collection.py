"""Test collections: queries, documents and what is relevant; those built from pairs are made here."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.formats.pairs import domains, read_pairs
from stages.scoring.params import HeldOutParams


@dataclass(frozen=True, kw_only=True)
class Text:
    """A query or a document; its domain decides its prefix."""

    id: str
    text: str
    domain: str


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A test collection. ``relevant`` maps query ids to document ids and their relevance, which is at least 1.

    ``missing`` counts what was judged but is not there, by kind. Relevant documents that are missing stay in
    ``relevant``: nobody finds them. ``candidates`` are the numbers of the documents to rank for each query, in the
    order of the queries; None means all documents.
    """

    name: str
    queries: list[Text]
    documents: list[Text]
    relevant: dict[str, dict[str, int]]
    missing: dict[str, int] = field(default_factory=dict)
    candidates: list[list[int]] | None = None


def held_out(pairs: Path, params: HeldOutParams, split: Literal["dev", "test"] = "test") -> Collection:
    """Build a collection of held-out queries against documents, both from all domains.

    Queries come only from ``split``, documents from all splits. Documents with the same text are one document.

    Raises:
        InputError: there are no pairs in this split.
    """
    queries: dict[str, Text] = {}
    documents: dict[str, Text] = {}
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    for domain in domains(pairs):
        table = read_pairs(pairs, domain).select(["query", "document", "split"])
        for query, document, own in zip(*table.to_pydict().values(), strict=True):
            document_id = content_id(document)
            documents.setdefault(document_id, Text(id=document_id, text=document, domain=domain))
            if own == split:
                query_id = content_id(domain, query)
                queries[query_id] = Text(id=query_id, text=query, domain=domain)
                relevant[query_id][document_id] = 1
    if not queries:
        share = "ingest.held_out" if split == "test" else "ingest.dev"
        raise InputError(f"{pairs}: no held-out pairs to evaluate on; raise {share}")
    asked = [queries[query_id] for query_id in sorted(queries)[: params.queries]]
    wanted = {document_id for query in asked for document_id in relevant[query.id]}
    fill = [document_id for document_id in sorted(documents) if document_id not in wanted]
    chosen = sorted([*wanted, *fill[: max(params.documents - len(wanted), 0)]])
    return Collection(
        name="held_out" if split == "test" else split,
        queries=asked,
        documents=[documents[document_id] for document_id in chosen],
        relevant={query.id: relevant[query.id] for query in asked},
    )


def has_split(pairs: Path, split: Literal["dev", "test"]) -> bool:
    """Whether any domain has pairs in this split."""
    return any(len(read_pairs(pairs, domain, split)) > 0 for domain in domains(pairs))
