"""Test collections (queries, documents and what is relevant), those made of pairs, and how well a ranking finds it."""

import heapq
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import ir_measures
import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.core.normal_form import normal_forms
from batchwright.core.params import Params
from batchwright.formats.models import SIDES
from batchwright.formats.pairs import Split, domains, scan_pairs
from batchwright.formats.query_scores import MEASURES
from stages.scoring.measures import checked, counts_answers, depth_of, first_with_answer, measure_of

DEPTH = 100
T = TypeVar("T")


class HeldOutParams(Params):
    """Groups ``evaluate.held_out`` and ``evaluate.dev``."""

    queries: int = Field(default=1000, gt=0)
    """Maximum number of held-out queries, drawn by hash from all domains."""
    documents: int = Field(default=5000, gt=0)
    """Number of documents to search: all relevant ones, filled up to this number with others drawn by hash."""
    training_documents: bool = False
    """Whether those that fill up may be of training pairs, where too few pairs are held out. None of these answers a
    held-out query, and models learn just that, those that saw most negatives most."""


class RerankParams(Params):
    """Group ``evaluate.rerank``: BEIR truncated, as *Contextual Document Embeddings* does for small models."""

    first: str = "BM25"
    """Who finds the documents to rank: ``BM25``, or the folder of a start model, such as ``models/start/gtr``."""
    documents: int = Field(default=1000, ge=1)
    """How many documents it finds for each query; no others are ranked."""


class EvaluateParams(Params):
    """Group ``evaluate``."""

    held_out: HeldOutParams = HeldOutParams()
    """Size of the collection built from the pairs of the test split."""
    dev: HeldOutParams | None = None
    """Size of the collection built from the pairs of the dev split, which ``train.common.evaluate_every`` needs."""
    beir: list[str] = []
    """BEIR folders, such as ``raw/beir/scifact``; models are evaluated on their test splits as well."""
    rerank: RerankParams | None = None
    """Ranks only what a first model finds in a BEIR collection; null searches all of its documents."""
    measures: list[Annotated[str, AfterValidator(checked)]] = []
    """Measures beside nDCG@10, MRR@10 and Recall@100: ``ndcg``, ``mrr``, ``recall``, ``hit_rate``, ``map`` or
    ``precision``, each with a depth, such as ``hit_rate@5``. ``answers@5`` is the share of queries for which one of the
    first 5 documents contains an answer; in BEIR folders, ``queries.jsonl`` may list ``answers``."""
    tokens: int = Field(default=1000, ge=1)
    """Tokens that each query token of an XTR model retrieves, k'; 40,000 in the paper."""
    exact_documents: int = Field(default=100_000, ge=0)
    """Up to so many documents of a collection, XTR compares with whole token vectors, in memory. It searches larger
    ones through compressed vectors on disk."""

    @property
    def depth(self) -> int:
        """How many documents are ranked for each query."""
        return max([DEPTH, *map(depth_of, self.measures)])


@dataclass(frozen=True, kw_only=True)
class Text:
    """A query or a document; its domain decides its prefix."""

    id: str
    text: str
    domain: str


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A test collection. ``relevant`` maps query ids to document ids and their relevance, which is at least 1.

    ``flaws`` counts those of ``query_scores.FLAWS``, by name. Relevant documents that are missing stay in ``relevant``:
    nobody finds them. ``candidates`` are the numbers of the documents to rank for each query, in the order of the
    queries; None means all documents. ``own`` are the numbers of the documents that are the queries themselves, which
    nobody may find, or -1; if it is empty, there are none. ``answers`` maps query ids to strings that answer the query.
    """

    name: str
    queries: list[Text]
    documents: list[Text]
    relevant: dict[str, dict[str, int]]
    flaws: dict[str, int] = field(default_factory=dict)
    candidates: list[list[int]] | None = None
    own: list[int] = field(default_factory=list)
    answers: dict[str, list[str]] = field(default_factory=dict)


def held_out(pairs: Path, params: HeldOutParams, split: Literal["dev", "test"] = "test") -> Collection:
    """Build a collection of held-out queries against documents, both from all domains.

    Queries come only from ``split``, documents from all splits, unless ``params`` leave out those of training pairs.
    Documents with the same text are one document. What answers a query anywhere, in another domain or in other case, is
    relevant. A document with the query's own text is not.

    Raises:
        InputError: there are no pairs in this split.
    """
    queries = _queries(pairs, split, params.queries)
    if not queries:
        share = "ingest.held_out" if split == "test" else "ingest.dev"
        raise InputError(f"{pairs}: no held-out pairs to evaluate on; raise {share}")
    relevant = _relevant(pairs, split, queries)
    documents = _documents(pairs, {document for judged in relevant.values() for document in judged}, params)
    return Collection(
        name="held_out" if split == "test" else split,
        queries=queries,
        documents=documents,
        relevant=relevant,
        own=own_documents([content_id(query.text) for query in queries], documents),
    )


def own_documents(ids: Sequence[str], documents: Sequence[Text]) -> list[int]:
    """Return the numbers of the documents with these ids, one a query, or -1; nothing if there are none at all.

    An empty id is that of no document.
    """
    numbers = {document.id: number for number, document in enumerate(documents)}
    own = [numbers.get(key, -1) if key else -1 for key in ids]
    return own if max(own, default=-1) >= 0 else []


def _queries(pairs: Path, split: Split, count: int) -> list[Text]:
    """The queries of each domain with the smallest ids, which are hashes."""
    smallest: dict[str, Text] = {}
    for domain in domains(pairs):
        for batch in scan_pairs(pairs, domain, split, ["query"]):
            for query in batch["query"].to_pylist():
                key = content_id(domain, query)
                smallest.setdefault(key, Text(id=key, text=query, domain=domain))
            smallest = _smallest(smallest, count)
    return list(smallest.values())


def _relevant(pairs: Path, split: Split, queries: Sequence[Text]) -> dict[str, dict[str, int]]:
    """The documents that answer each query, or one of the same normal form, in any domain."""
    forms = normal_forms([query.text for query in queries])
    found: dict[str, dict[str, int]] = {form: {} for form in forms}
    for domain in domains(pairs):
        for batch in scan_pairs(pairs, domain, split, SIDES):
            asked, documents = (batch[side].to_pylist() for side in SIDES)
            for form, document in zip(normal_forms(asked), documents, strict=True):
                if form in found:
                    found[form][content_id(document)] = 1
    return {
        query.id: {document: 1 for document in found[form] if document != content_id(query.text)}
        for query, form in zip(queries, forms, strict=True)
    }


def trained_forms(pairs: Path, asked: Set[str]) -> set[str]:
    """Return those of the normal forms ``asked`` that queries of training pairs have."""
    trained = set[str]()
    for domain in domains(pairs) if asked else ():
        for batch in scan_pairs(pairs, domain, "train", ["query"]):
            trained |= asked & set(normal_forms(batch["query"].to_pylist()))
    return trained


def _documents(pairs: Path, wanted: set[str], params: HeldOutParams) -> list[Text]:
    """The ``wanted`` documents, and of the others that may be searched those with the smallest ids."""
    missing = max(params.documents - len(wanted), 0)
    chosen: dict[str, Text] = {}
    others: dict[str, Text] = {}
    splits: tuple[Split, ...] = ("test", "dev", "train")
    for split in splits:
        for domain in domains(pairs):
            for batch in scan_pairs(pairs, domain, split, ["document"]):
                texts = {content_id(text): text for text in batch["document"].to_pylist()}
                of_batch = {key: Text(id=key, text=text, domain=domain) for key, text in texts.items()}
                chosen = {key: of_batch.pop(key) for key in wanted & of_batch.keys()} | chosen
                if params.training_documents:
                    others = _smallest(of_batch | others, missing)
                elif split == "train":
                    others = {key: text for key, text in others.items() if key not in of_batch}
                else:
                    others = of_batch | others
    return [text for _, text in sorted((chosen | _smallest(others, missing)).items())]


def _smallest(entries: dict[str, T], count: int) -> dict[str, T]:
    """The entries with the smallest keys; what is left out once never comes back, so memory stays small."""
    return {key: entries[key] for key in heapq.nsmallest(count, entries)}


def has_split(pairs: Path, split: Literal["dev", "test"]) -> bool:
    """Whether any domain has pairs in this split."""
    return any(len(batch) for domain in domains(pairs) for batch in scan_pairs(pairs, domain, split, []))


def score_queries(
    collection: Collection, indices: NDArray[np.int64], measures: Sequence[str] = ()
) -> dict[str, dict[str, float]]:
    """Return ``MEASURES`` and others of each query, ``{query id: {measure: value}}``.

    ``indices`` ``(Q, k)`` are the documents ranked for each query, best first; -1 and the query's own document are
    skipped. Answers are counted only if the collection has some.
    """
    own = collection.own or [-1] * len(collection.queries)
    ranking = {
        query.id: [collection.documents[index] for index in row if index not in (-1, itself)]
        for query, row, itself in zip(collection.queries, indices.tolist(), own, strict=True)
    }
    asked = dict.fromkeys([*MEASURES, *measures])
    names = {measure_of(name): name for name in asked if not counts_answers(name)}
    found = [name for name in asked if counts_answers(name) and collection.answers]
    scored = {query.id: dict.fromkeys([*names.values(), *found], 0.0) for query in collection.queries}
    run = {key: {each.id: float(-rank) for rank, each in enumerate(ranked)} for key, ranked in ranking.items()}
    for value in ir_measures.iter_calc(list(names), collection.relevant, run):
        scored[value.query_id][names[value.measure]] = value.value
    for key, ranked in ranking.items() if found else ():
        texts = [each.text for each in ranked[: max(map(depth_of, found))]]
        first = first_with_answer(collection.answers[key], texts)
        scored[key] |= {name: float(first is not None and first < depth_of(name)) for name in found}
    return scored


def average(scored: Mapping[str, Mapping[str, float]], queries: Iterable[str]) -> dict[str, float]:
    """Return the mean of each measure over ``queries``."""
    chosen = [scored[query] for query in queries]
    return {name: round(sum(measures[name] for measures in chosen) / len(chosen), 6) for name in chosen[0]}
