"""What the systems of all variants reach, merged from ``results/evaluate``."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from formats.errors import InputError
from stages.report.records import Record, read_record, read_rows

HELD_OUT = "held_out"


class Scores(Record):
    """The measures of one system on one collection."""

    ndcg: float = Field(alias="ndcg@10")
    mrr: float = Field(alias="mrr@10")
    recall: float = Field(alias="recall@100")


class DomainScores(Scores):
    """One row of ``results/evaluate/VARIANT.tsv``."""

    collection: str
    domain: str
    system: str
    queries: int


@dataclass(kw_only=True)
class Evaluation:
    """Scores by collection and system, and held-out nDCG@10 by domain and system.

    ``systems`` and ``queries`` (the collections with their number of queries) are in the order of evaluation.
    """

    variants: list[str] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    queries: dict[str, int] = field(default_factory=dict)
    scores: dict[tuple[str, str], Scores] = field(default_factory=dict)
    domains: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def best(self) -> tuple[str, float]:
        """System with the highest held-out nDCG@10, and that."""
        return max(self.ndcg(HELD_OUT).items(), key=lambda item: item[1])

    def ndcg(self, collection: str) -> dict[str, float]:
        """nDCG@10 of each system on a collection."""
        return {
            system: self.scores[collection, system].ndcg
            for system in self.systems
            if (collection, system) in self.scores
        }


def read_evaluation(folder: Path, variants: Iterable[str]) -> Evaluation:
    """Merge these variants; a system that scores differently from variant to variant gets a row for each.

    Raises:
        InputError: a file is not there, or not of the form that ``evaluate`` writes.
    """
    merged = Evaluation()
    for variant in variants:
        _merge(merged, folder / f"{variant}.json")
    return merged


def _merge(merged: Evaluation, file: Path) -> None:
    """Add a variant; its table tells the order of systems and collections, which JSON's sorted keys do not."""
    overall = read_record(dict[str, dict[str, Scores]], file, made_by="evaluate")
    rows = read_rows(DomainScores, file.with_suffix(".tsv"), made_by="evaluate")
    if HELD_OUT not in overall:
        raise InputError(f"{file}: no scores of '{HELD_OUT}'; run the stage 'evaluate' again")
    merged.variants.append(file.stem)
    for system in dict.fromkeys(row.system for row in rows):
        scores = {name: systems[system] for name, systems in overall.items() if system in systems}
        _add(merged, file.stem, system, scores, [row for row in rows if row.system == system])


def _add(merged: Evaluation, variant: str, system: str, scores: dict[str, Scores], rows: list[DomainScores]) -> None:
    differs = any(merged.scores.get((name, system), own) != own for name, own in scores.items())
    label = f"{system} ({variant})" if differs else system
    if label not in merged.systems:
        merged.systems.append(label)
    merged.scores.update({(name, label): own for name, own in scores.items()})
    merged.domains.update({(row.domain, label): row.ndcg for row in rows if row.collection == HELD_OUT})
    for name in dict.fromkeys(row.collection for row in rows):
        merged.queries[name] = sum(row.queries for row in rows if row.collection == name)
