"""Scores of each query: one Parquet file for the systems that one stage scored."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError

MEASURES = ("ndcg@10", "mrr@10", "recall@100")
FLAWS = {
    "missing_documents": "relevant documents of {} are not in its corpus and count as not found",
    "missing_queries": "judged queries of {} are not in its queries.jsonl and are left out",
    "trained_queries": "queries of {} are queries of training pairs, too, which flatters its scores",
}
"""What is wrong with a collection, said of their number, for the collection's name."""

QUERY_SCORES_SCHEMA = pa.schema(
    [
        pa.field("collection", pa.string(), nullable=False),
        pa.field("system", pa.string(), nullable=False),
        pa.field("seed", pa.int32(), nullable=False),
        pa.field("domain", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        *(pa.field(measure, pa.float64(), nullable=False) for measure in MEASURES),
    ]
)

ByQuery = dict[str, float]
"""The nDCG@10 of each query, by id."""
BySeed = list[ByQuery]
"""The same of each seed that a system was trained with: the first, the second, ...; others have one."""


def write_query_scores(file: Path, rows: Sequence[Mapping[str, Any]], measures: Sequence[str] = ()) -> None:
    """Write rows that have the schema's columns, atomically; they may lack other ``measures``, which follow."""
    schema = QUERY_SCORES_SCHEMA
    for measure in measures:
        schema = schema.append(pa.field(measure, pa.float64()))
    with atomic_file(file) as temporary:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), temporary, compression="zstd")


def flaws(counts: Mapping[str, Any], collection: str) -> list[str]:
    """Say what is wrong with a collection; ``counts`` may hold numbers of other things."""
    return [f"{counts[flaw]:,} {said.format(collection)}" for flaw, said in FLAWS.items() if counts.get(flaw)]


def read_query_scores(file: Path, made_by: str) -> dict[tuple[str, str], BySeed]:
    """Read the nDCG@10 of every seed and query, by collection and system, both in the order of the file.

    Raises:
        InputError: the file is missing or damaged; the message says to run the stage ``made_by``.
    """
    try:
        table = pq.read_table(file, partitioning=None, columns=["collection", "system", "seed", "query", MEASURES[0]])
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; run the stage '{made_by}' first") from None
    except pa.ArrowInvalid as error:
        raise InputError(f"{file}: not a readable Parquet file ({error}); run the stage '{made_by}' again") from None
    found: dict[tuple[str, str], dict[int, ByQuery]] = {}
    for row in table.to_pylist():
        seeds = found.setdefault((row["collection"], row["system"]), {})
        seeds.setdefault(row["seed"], {})[row["query"]] = row[MEASURES[0]]
    return {key: [scores for _, scores in sorted(seeds.items())] for key, seeds in found.items()}
