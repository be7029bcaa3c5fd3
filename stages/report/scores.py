"""Retrieval scores of all systems, merged from several files, and what each run gains over other systems."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from batchwright.core.errors import InputError
from batchwright.core.paths import RESULTS
from stages.report.records import Record, read_record, read_rows

HELD_OUT = "held_out"
"""The collection of held-out pairs; all others are BEIR collections."""
BASELINES = RESULTS / "baselines.json"


MEASURE = re.compile(r"\w+@\d+(_\d+d)?")
"""A measure and its depth, and the number of dimensions that vectors were cut to."""


class Scores(Record):
    """The measures of one system on one collection."""

    model_config = ConfigDict(frozen=True, extra="allow")

    ndcg: float = Field(alias="ndcg@10")
    mrr: float = Field(alias="mrr@10")
    recall: float = Field(alias="recall@100")

    @property
    def others(self) -> dict[str, Any]:
        """What else is said, by name."""
        return self.model_extra or {}

    @property
    def more(self) -> dict[str, float]:
        """Other measures, by name."""
        return {name: value for name, value in self.others.items() if MEASURE.fullmatch(name)}


class DomainScores(Scores):
    """One row of the TSV file that accompanies a JSON file."""

    collection: str
    domain: str
    system: str
    queries: int


@dataclass(kw_only=True)
class Evaluation:
    """Scores by collection and system, and held-out nDCG@10 by domain and system.

    ``systems`` and ``collections`` are in the order of evaluation; ``queries`` counts the queries by collection.
    """

    systems: list[str] = field(default_factory=list)
    collections: list[str] = field(default_factory=list)
    queries: dict[str, int] = field(default_factory=dict)
    scores: dict[tuple[str, str], Scores] = field(default_factory=dict)
    domains: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """The collection that comes first: held-out queries, or a BEIR collection if there are none."""
        return self.collections[0]

    @property
    def best(self) -> tuple[str, float]:
        """The system with the highest nDCG@10 on the first collection, and its score."""
        return max(self.ndcg(self.first).items(), key=lambda item: item[1])

    def ndcg(self, collection: str) -> dict[str, float]:
        """Return the nDCG@10 of each system on a collection."""
        return {
            system: self.scores[collection, system].ndcg
            for system in self.systems
            if (collection, system) in self.scores
        }

    def more(self, collection: str) -> list[str]:
        """Return the names of other measures on a collection."""
        of_collection = (scores for (name, _), scores in self.scores.items() if name == collection)
        return list(dict.fromkeys(measure for scores in of_collection for measure in scores.more))


def title(collection: str) -> str:
    """The name of a collection as tables show it."""
    return "Held-out queries" if collection == HELD_OUT else collection


def evaluation_files(runs: Iterable[str]) -> list[Path]:
    """Return the file of the baselines and one file per run."""
    return [BASELINES, *(RESULTS / "evaluate" / f"{run}.json" for run in runs)]


def read_evaluation(files: Iterable[Path]) -> Evaluation:
    """Merge JSON files in this order, each with its TSV file.

    Raises:
        InputError: a file is missing or malformed, or it contradicts an earlier one.
    """
    merged = Evaluation()
    for file in files:
        made_by = "baselines" if file.stem == BASELINES.stem else "evaluate"
        overall = read_record(dict[str, dict[str, Scores]], file, made_by)
        if not any(overall.values()):
            raise InputError(f"{file}: no scores; run the stage '{made_by}' again")
        _merge(merged, file, overall, read_rows(DomainScores, file.with_suffix(".tsv"), made_by))
    return merged


def _merge(merged: Evaluation, file: Path, overall: dict[str, dict[str, Scores]], rows: list[DomainScores]) -> None:
    # The table is in the order of evaluation, the JSON file is sorted by name.
    collections = dict.fromkeys([*(row.collection for row in rows), *overall])
    systems = dict.fromkeys([*(row.system for row in rows), *(name for scores in overall.values() for name in scores)])
    if twice := [system for system in systems if system in merged.systems]:
        raise InputError(f"{file}: another file also contains scores of '{twice[0]}'; rename one of the two systems")
    merged.systems += systems
    merged.collections += [name for name in collections if name not in merged.collections]
    merged.scores |= {
        (name, system): scores for name, by_system in overall.items() for system, scores in by_system.items()
    }
    merged.domains |= {(row.domain, row.system): row.ndcg for row in rows if row.collection == HELD_OUT}
    for name, count in _count_queries(rows).items():
        if merged.queries.setdefault(name, count) != count:
            raise InputError(
                f"{file}: {count} queries of '{name}', but earlier files have {merged.queries[name]}; "
                "run the stages 'baselines' and 'evaluate' again"
            )


def _count_queries(rows: list[DomainScores]) -> dict[str, int]:
    """Count the queries of each collection, which are the same for all systems in a file."""
    counts = {(row.collection, row.domain): row.queries for row in rows}
    return {
        name: sum(count for (collection, _), count in counts.items() if collection == name)
        for name in dict.fromkeys(row.collection for row in rows)
    }


ERRORS = "± is the standard error: over queries and seeds, or, with one seed, over queries only"


class Difference(Record):
    """One row of ``results/compare.tsv``: nDCG@10 of ``system`` minus that of ``reference``, by query and seed."""

    collection: str
    system: str
    over: str
    """What the reference is: the model that the run starts from, BM25, random batches or MLM."""
    reference: str
    differs_in: str = ""
    """What differs from the reference, if it is another run; empty for others."""
    seeds: int = 1
    """How many seeds the error counts; if it is 1, it counts queries only."""
    queries: int
    ndcg: float = Field(alias="ndcg@10")
    difference: float
    error: float


def read_differences(file: Path = RESULTS / "compare.tsv") -> list[Difference]:
    """Read the differences of all runs."""
    return read_rows(Difference, file, made_by="compare")
