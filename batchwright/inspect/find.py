"""Finds pairs by their id or by words of their query."""

import re
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from batchwright.formats.shards import ShardSet
from batchwright.inspect.project import Project

_ID = re.compile("[0-9a-f]{6,32}", re.IGNORECASE)


def find_pairs(shards: ShardSet, project: Project, asked: str) -> list[dict[str, str]]:
    """Return id, query, domain and, if it is known, split of the pairs that ``asked`` names.

    These are the pairs whose id begins so or, if there are none, those whose query equals it, or has all of its words;
    queries that have the words in this order come first.
    """
    tables = list(_tables(shards, project))
    if _ID.fullmatch(asked) and (rows := _rows(tables, lambda each: pc.starts_with(each["id"], asked.lower()))):
        return rows
    rows = _rows(tables, lambda each: has_words(each["query"], asked))
    folded = {row["id"]: " ".join(row["query"].casefold().split()) for row in rows}
    phrase = " ".join(asked.casefold().split())
    return [row for row in rows if folded[row["id"]] == phrase] or sorted(
        rows, key=lambda row: phrase not in folded[row["id"]]
    )


def has_words(texts: pa.ChunkedArray, asked: str) -> pa.ChunkedArray:
    """Return which texts contain all words of ``asked``, in any order and case."""
    every = [pc.match_substring(texts, word, ignore_case=True) for word in asked.split()]
    found = every[0]
    for each in every[1:]:
        found = pc.and_(found, each)
    return found


def _rows(
    tables: Iterable[tuple[str | None, pa.Table]], chosen: Callable[[pa.Table], pa.ChunkedArray]
) -> list[dict[str, str]]:
    """Return the rows ``chosen`` from tables of domains, each pair once."""
    found = {}
    for domain, table in tables:
        for row in table.filter(chosen(table)).to_pylist():
            found[row["id"]] = row if domain is None else {"domain": domain, **row}
    return list(found.values())


def _tables(shards: ShardSet, project: Project) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield the pairs of each domain, or without them those of all batches."""
    for domain in project.domains:
        yield domain, project.columns(domain, "id", "query", "split")
    if not project.domains:
        yield None, pa.Table.from_batches(shards.columns("id", "query", "domain"))
