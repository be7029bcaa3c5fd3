"""Test collections out of BEIR folders."""

from collections import defaultdict
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.formats.beir import BeirFolder
from stages.scoring.collection import Collection, Text

_DECIMALS = 3


def beir(folder: Path, name: str | None = None) -> Collection:
    """Read the test split of a BEIR folder: queries with a relevant document, against the whole corpus.

    Grades with decimals are multiplied by the power of ten that makes them whole numbers; nDCG stays as it is.

    Raises:
        InputError: no query has a relevant document, or the corpus is empty.
    """
    source = BeirFolder(folder)
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    for query_id, document_id, grade in source.judgments():
        if grade > 0:
            grades[query_id][document_id] = grade
    queries = [Text(id=key, text=text, domain=folder.name) for key, text in source.queries() if key in grades]
    documents = [Text(id=key, text=text, domain=folder.name) for key, text in source.documents()]
    if not queries or not documents:
        raise InputError(f"{folder}: no judged queries, or no documents; check the query ids in qrels/test.tsv")
    relevant = _whole({query.id: grades[query.id] for query in queries})
    there = {document.id for document in documents}
    missing = {
        "missing_documents": len({key for judged in relevant.values() for key in judged} - there),
        "missing_queries": len(grades) - len(queries),
    }
    return Collection(
        name=name or folder.name,
        queries=queries,
        documents=documents,
        relevant=relevant,
        missing={kind: count for kind, count in missing.items() if count},
    )


def _whole(grades: dict[str, dict[str, float]]) -> dict[str, dict[str, int]]:
    every = [grade for judged in grades.values() for grade in judged.values()]
    factor = next(
        10**digits
        for digits in range(_DECIMALS + 1)
        if digits == _DECIMALS or all(round(grade * 10**digits, 6).is_integer() for grade in every)
    )
    return {
        query: {document: max(round(grade * factor), 1) for document, grade in judged.items()}
        for query, judged in grades.items()
    }
