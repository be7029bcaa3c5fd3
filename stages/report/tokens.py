"""How retrieval by tokens went: ``results/evaluate/tokens/VARIANT*.tsv`` and their charts."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from pydantic import Field

from stages.report import charts
from stages.report.records import Record, read_rows


class Retrieval(Record):
    """One row of ``results/evaluate/tokens/VARIANT.tsv``."""

    retrieved: int
    imputation: str
    ndcg: float = Field(alias="ndcg@10")
    recall: float = Field(alias="recall@100")
    imputed: float


class Rank(Record):
    """One row of ``results/evaluate/tokens/VARIANT-ranks.tsv``."""

    rank: int
    lexical: float
    gold: float


def read_tokens(folder: Path, variants: Sequence[str]) -> dict[str, tuple[list[Retrieval], list[Rank]]]:
    """Retrieval by tokens, of those variants that have it."""
    return {
        variant: (
            read_rows(Retrieval, folder / f"{variant}.tsv", made_by="tokens"),
            read_rows(Rank, folder / f"{variant}-ranks.tsv", made_by="tokens"),
        )
        for variant in variants
        if (folder / f"{variant}.tsv").exists()
    }


def draw_tokens(variant: str, rows: Sequence[Retrieval], ranks: Sequence[Rank]) -> dict[str, Markup]:
    """Charts by title."""
    by_imputation = {
        name: [row for row in rows if row.imputation == name] for name in dict.fromkeys(row.imputation for row in rows)
    }
    counts = {name: [row.retrieved for row in own] for name, own in by_imputation.items()}
    across = "tokens retrieved by each query token"
    first = next(iter(by_imputation))
    places = [row.rank for row in ranks]
    measures = {"nDCG@10": "ndcg", "Recall@100": "recall"}
    drawn = {
        title: charts.lines(
            {name: (counts[name], [getattr(row, measure) for row in own]) for name, own in by_imputation.items()},
            across, f"{title} of {variant}", log=True,
        )
        for title, measure in measures.items()
    }  # fmt: skip
    imputed = {"imputed": (counts[first], [row.imputed for row in by_imputation[first]])}
    by_rank = {name: (places, [getattr(row, name) for row in ranks]) for name in ("lexical", "gold")}
    return drawn | {
        "Share of similarities that are imputed": charts.lines(imputed, across, f"imputation of {variant}", log=True),
        "Shares of lexical and of gold tokens by rank": charts.lines(by_rank, "rank", f"ranks of {variant}"),
    }
