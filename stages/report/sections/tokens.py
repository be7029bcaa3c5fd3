"""Tokens: how retrieval by tokens suffers if fewer tokens are retrieved."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from pydantic import Field

from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from stages.report import charts
from stages.report.params import Names
from stages.report.records import Record, read_rows
from stages.report.section import Section, show_charts


class Retrieval(Record):
    """One row of ``results/tokens/RUN.tsv``."""

    retrieved: int
    imputation: str
    ndcg: float = Field(alias="ndcg@10")
    recall: float = Field(alias="recall@100")
    imputed: float


class Rank(Record):
    """One row of ``results/tokens/RUN-ranks.tsv``."""

    rank: int
    lexical: float
    gold: float


def section() -> Section | None:
    """Return charts of the runs that have been measured."""
    runs = [run for run in load_params("tokens", Names).root if _table(run).exists()]
    if not runs:
        return None
    return Section(
        id="tokens",
        title="Retrieval by tokens",
        intro="The fewer tokens are retrieved, the cheaper the search. Similarities that were not retrieved are "
        "imputed: by the last retrieved one, not at all (none), by the mean of those retrieved, or by a constant.",
        parts=[show_charts(_charts(run), heading=run) for run in runs],
    )


def _table(run: str) -> Path:
    return RESULTS / "tokens" / f"{run}.tsv"


def _charts(run: str) -> dict[str, Markup]:
    rows = read_rows(Retrieval, _table(run), made_by="tokens")
    ranks = read_rows(Rank, _table(f"{run}-ranks"), made_by="tokens")
    return _by_count(run, rows) | {"Shares of lexical and of gold tokens by rank": _by_rank(run, ranks)}


def _by_count(run: str, rows: Sequence[Retrieval]) -> dict[str, Markup]:
    """Return charts by title, against the number of tokens retrieved."""
    names = dict.fromkeys(row.imputation for row in rows)
    by_imputation = {name: [row for row in rows if row.imputation == name] for name in names}
    counts = {name: [row.retrieved for row in own] for name, own in by_imputation.items()}
    across = "tokens retrieved by each query token"
    ndcg = {name: (counts[name], [row.ndcg for row in own]) for name, own in by_imputation.items()}
    recall = {name: (counts[name], [row.recall for row in own]) for name, own in by_imputation.items()}
    first = next(iter(by_imputation))  # the imputed share is the same for all of them
    imputed = {"imputed": (counts[first], [row.imputed for row in by_imputation[first]])}
    return {
        "nDCG@10": charts.lines(ndcg, across, f"nDCG@10 of {run}", log=True),
        "Recall@100": charts.lines(recall, across, f"Recall@100 of {run}", log=True),
        "Share of similarities that are imputed": charts.lines(imputed, across, f"imputation of {run}", log=True),
    }


def _by_rank(run: str, ranks: Sequence[Rank]) -> Markup:
    places = [row.rank for row in ranks]
    curves = {"lexical": (places, [row.lexical for row in ranks]), "gold": (places, [row.gold for row in ranks])}
    return charts.lines(curves, "rank", f"ranks of {run}")
