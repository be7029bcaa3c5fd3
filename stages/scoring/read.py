"""All collections that models and baselines are scored on: held-out pairs and BEIR folders, whole or truncated."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from batchwright.core.errors import InputError
from batchwright.core.normal_form import normal_forms
from batchwright.core.params import Language
from batchwright.core.paths import RAW, check_watched
from batchwright.core.terminal import shown
from batchwright.formats.beir import BeirFolder
from stages.scoring.collection import (
    Collection,
    EvaluateParams,
    Text,
    has_split,
    held_out,
    own_documents,
    trained_forms,
)
from stages.scoring.measures import counts_answers
from stages.scoring.retrieval import BM25, System, model_system, word_system

HELD_OUT = "held_out"
MOST_DECIMALS = 3
"""Decimals of grades that count."""


def read_collections(pairs: Path, params: EvaluateParams, language: Language | None = "english") -> list[Collection]:
    """Read the held-out pairs, if there are any, then the BEIR folders; ``language`` is for BM25 as ``rerank.first``.

    Raises:
        InputError: there is nothing to evaluate on, a folder is named twice, or it lies outside ``raw/beir``, or a
            measure counts answers, and there are none.
    """
    check_watched(params.beir, RAW / "beir")
    collections = [beir(Path(folder), name) for folder, name in zip(params.beir, names(params.beir), strict=True)]
    collections = _with_trained_queries(collections, pairs)
    if counted := [name for name in params.measures if counts_answers(name)]:
        folders = zip(collections, params.beir, strict=True)
        collections = [
            replace(collection, answers=_answers(Path(folder), collection)) for collection, folder in folders
        ]
        if not any(collection.answers for collection in collections):
            raise InputError(
                f"evaluate.measures: {counted[0]} needs answers, which the queries.jsonl of no folder in evaluate.beir "
                "has; add a list 'answers' to each of its lines, or remove the measure"
            )
    if params.rerank:
        first, depth = params.rerank.first, params.rerank.documents
        system = word_system(depth, language) if first == BM25 else model_system(Path(first), params, depth)
        collections = [truncate(collection, system) for collection in collections]
    if not collections or has_split(pairs, "test"):
        collections.insert(0, held_out(pairs, params.held_out))
    return collections


def names(folders: Sequence[str]) -> list[str]:
    """Names of collections: the folders' own names, or their whole paths where these are not unique."""
    paths = [Path(folder) for folder in folders]
    if twice := [str(path) for path, count in Counter(paths).items() if count > 1]:
        raise InputError(f"evaluate.beir names '{twice[0]}' twice; remove one of the two")
    own = Counter([HELD_OUT, *(path.name for path in paths)])
    return [path.name if own[path.name] == 1 else str(path) for path in paths]


def beir(folder: Path, name: str | None = None) -> Collection:
    """Read the test split of a BEIR folder: queries with a relevant document, against the whole corpus.

    A query that has the id of a document does not find that document, as in BEIR and MTEB, unless it is relevant: then
    queries and documents are numbered alike, and it is not the query.
    Grades with decimals are multiplied by the power of ten that makes them whole numbers; nDCG stays as it is.

    Raises:
        InputError: no query has a relevant document, the corpus is empty, or an id or a text is not UTF-8.
    """
    source = BeirFolder(folder)
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    judgments = list(source.judgments())
    for query_id, document_id, grade in judgments:
        if grade > 0:
            grades[query_id][document_id] = grade
    if judgments and not grades:
        raise InputError(f"{folder}/qrels/test.tsv: no document is relevant; one needs a relevance above 0")
    queries = [Text(id=key, text=text, domain=folder.name) for key, text in source.queries() if key in grades]
    documents = [Text(id=key, text=text, domain=folder.name) for key, text in source.documents()]
    if not queries or not documents:
        raise InputError(f"{folder}: no judged queries, or no documents; check the query ids in qrels/test.tsv")
    _check_letters(folder / "queries.jsonl", queries)
    _check_letters(folder / "corpus.jsonl", documents)
    relevant = _whole({query.id: grades[query.id] for query in queries})
    there = {document.id for document in documents}
    flaws = {
        "missing_documents": len({key for judged in relevant.values() for key in judged} - there),
        "missing_queries": len(grades) - len(queries),
    }
    return Collection(
        name=name or folder.name,
        queries=queries,
        documents=documents,
        relevant=relevant,
        own=own_documents(["" if query.id in relevant[query.id] else query.id for query in queries], documents),
        flaws={flaw: count for flaw, count in flaws.items() if count},
    )


def _with_trained_queries(collections: Sequence[Collection], pairs: Path) -> list[Collection]:
    """Count the queries of each collection that training pairs have, too, in normal form."""
    forms = [normal_forms([query.text for query in collection.queries]) for collection in collections]
    trained = trained_forms(pairs, {form for of_collection in forms for form in of_collection})
    counts = [sum(form in trained for form in of_collection) for of_collection in forms]
    return [
        replace(collection, flaws=collection.flaws | ({"trained_queries": count} if count else {}))
        for collection, count in zip(collections, counts, strict=True)
    ]


def _check_letters(file: Path, texts: Sequence[Text]) -> None:
    """JSON can hold halves of surrogate pairs, with which tokenizers fail, and pytrec_eval crashes."""
    for each in texts:
        try:
            f"{each.id}{each.text}".encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{file}: {shown(each.id)} holds half a surrogate pair, which is not UTF-8; correct it"
            ) from None


def _answers(folder: Path, collection: Collection) -> dict[str, list[str]]:
    """Return the answers of all queries, or none if no query has any."""
    found = dict(BeirFolder(folder).answers())
    answers = {query.id: found[query.id] for query in collection.queries if found[query.id]}
    if without := [query.id for query in collection.queries if query.id not in answers] if answers else []:
        raise InputError(
            f"{folder / 'queries.jsonl'}: {len(without):,} judged queries have no 'answers', such as "
            f"{shown(without[0])}; add them, or remove the queries from qrels/test.tsv"
        )
    return answers


def _whole(grades: dict[str, dict[str, float]]) -> dict[str, dict[str, int]]:
    every = [grade for judged in grades.values() for grade in judged.values()]
    factor = next(
        10**digits
        for digits in range(MOST_DECIMALS + 1)
        if digits == MOST_DECIMALS or all(round(grade * 10**digits, 6).is_integer() for grade in every)
    )
    return {
        query: {document: max(round(grade * factor), 1) for document, grade in judged.items()}
        for query, judged in grades.items()
    }


def truncate(collection: Collection, first: System) -> Collection:
    """Keep the documents that ``first`` finds for each query, and no others.

    What is relevant stays as it is: a relevant document that ``first`` does not find counts as not found.
    *Contextual Document Embeddings* (arXiv 2410.02525) evaluates small models so.

    Raises:
        InputError: it finds none at all.
    """
    ranked = first(collection)
    kept = np.unique(ranked[ranked >= 0])
    if not len(kept):
        raise InputError(
            f"{collection.name}: evaluate.rerank.first finds no document for any query, so there is nothing to rank; "
            "name another one"
        )
    numbers = {old: new for new, old in enumerate(kept.tolist())}
    return replace(
        collection,
        documents=[collection.documents[number] for number in kept],
        candidates=[[numbers[number] for number in row if number >= 0] for row in ranked.tolist()],
        own=[],  # it is not among the candidates
    )
