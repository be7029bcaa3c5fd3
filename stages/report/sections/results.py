"""Results: how well every system retrieves, and what every run gains."""

from collections.abc import Mapping, Sequence
from itertools import chain

from markupsafe import Markup

from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from batchwright.formats.query_scores import flaws
from batchwright.formats.runs import Choice, Run, Runs
from stages.report import charts
from stages.report.page import Section, show_charts, show_long_table, show_table
from stages.report.records import read_record
from stages.report.scores import (
    ERRORS,
    Difference,
    Evaluation,
    evaluation_files,
    read_differences,
    read_evaluation,
    title,
)
from stages.report.table import NONE, Table, best_of_columns, best_of_rows, share, signed

DIFFERS = "other runs differ in"
MEASURES = ["nDCG@10", "MRR@10", "Recall@100"]


def section() -> Section:
    """Return tables and bar charts of all systems, baselines first."""
    runs = load_params("runs", Runs).root
    evaluation = read_evaluation(evaluation_files(runs))
    by_domain = results_by_domain(evaluation)
    batches = {name: run.batches for name, run in runs.items()}
    differences = read_differences()
    tuned = choices_table(runs)
    bars = {title(name): _bars(evaluation.ndcg(name), title(name), batches) for name in evaluation.collections}
    return Section(
        id="results",
        title="Results",
        intro="Higher is better in every column, and the best value is bold. What a run gains over the model it starts "
        "from (“before training”) comes from training. What it gains over another run comes from the batches, or from "
        "the decoder (over MLM: an encoder pre-trained without one), and from whatever else the table names. A "
        "difference of less than two standard errors may be chance.",
        parts=[
            show_table(
                differences_table(differences),
                f"What each run gains in nDCG@10, with the number of queries in brackets; {ERRORS}",
            ),
            *([show_table(tuned, "What the stage tune chose, by trials on dev queries")] if tuned.rows else []),
            show_table(results_table(evaluation), _caption(evaluation)),
            show_charts(bars),
            *([show_long_table(by_domain, "nDCG@10 on held-out queries by domain")] if len(by_domain.rows) > 1 else []),
        ],
    )


def choices_table(runs: Mapping[str, Run]) -> Table:
    """Return one row per run whose batches are a choice of the stage ``tune``: what was chosen, and why."""
    rows = []
    for name, run in runs.items():
        if (file := RESULTS / "tune" / f"{run.batches}.json").exists():
            choice = read_record(Choice, file, made_by="tune")
            settings = [f"{choice.temperature:g}", f"{choice.learning_rate:g}", choice.negatives_stand_for]
            rows.append([name, choice.batches, *settings, choice.reason])
    header = ["Run", "batches", "temperature", "learning rate", "negatives stand for", "why"]
    return Table(header=header, rows=rows, words=frozenset({0, 1, 4, 5}))


def differences_table(differences: Sequence[Difference]) -> Table:
    """Return one row per run: its seeds, and for each collection its nDCG@10 and the difference to each reference.

    A difference whose error counts fewer seeds, since the reference has fewer, says so. If a run differs from
    another that it is compared with in more than batches or decoder, a last column names what.
    """
    by_collection: dict[str, list[Difference]] = {}
    for row in differences:
        by_collection.setdefault(row.collection, []).append(row)
    overs = {name: list(dict.fromkeys(row.over for row in rows)) for name, rows in by_collection.items()}
    told: dict[str, dict[str, str]] = {}
    for row in differences:
        if row.differs_in:
            told.setdefault(row.system, {})[row.over] = row.differs_in
    last = [DIFFERS] if any("," in names for by_over in told.values() for names in by_over.values()) else []
    lines = []
    for system in dict.fromkeys(row.system for row in differences):
        seeds = max(row.seeds for row in differences if row.system == system)
        cells = [system, f"{seeds}"]
        for name, rows in by_collection.items():
            gains = {row.over: row for row in rows if row.system == system}
            cells.append(next((share(row.ndcg) for row in gains.values()), NONE))
            cells += [_gain(gains[over], seeds) if over in gains else NONE for over in overs[name]]
        names = "; ".join(f"{over}: {differs_in}" for over, differs_in in told.get(system, {}).items())
        lines.append([*cells, *(names or NONE for _ in last)])
    groups = [(f"{title(name)} ({rows[0].queries:,})", 1 + len(overs[name])) for name, rows in by_collection.items()]
    header = [cell for names in overs.values() for cell in ("nDCG@10", *(f"over {over}" for over in names))]
    return Table(
        header=["Run", "seeds", *header, *last],
        groups=[("", 2), *groups, *(("", 1) for _ in last)],
        rows=lines,
        words=frozenset({0, *(2 + len(header) for _ in last)}),
    )


def _gain(row: Difference, seeds: int) -> str:
    gain = signed(row.difference, row.error)
    return gain if row.seeds == seeds else f"{gain}, {row.seeds} seed{'s' if row.seeds > 1 else ''}"


def results_table(evaluation: Evaluation) -> Table:
    """Return one row per system, with three measures per collection and those that were asked for."""
    more = {name: evaluation.more(name) for name in evaluation.collections}
    rows = []
    for system in evaluation.systems:
        cells = [system]
        for name, others in more.items():
            scores = evaluation.scores.get((name, system))
            values = [scores.ndcg, scores.mrr, scores.recall, *map(scores.more.get, others)] if scores else []
            cells += [NONE if value is None else share(value) for value in values] or [NONE] * (3 + len(others))
        rows.append(cells)
    queries = {name: f" ({count:,})" for name, count in evaluation.queries.items()}
    return Table(
        header=["System", *chain.from_iterable([*MEASURES, *others] for others in more.values())],
        groups=[("", 1), *((title(name) + queries.get(name, ""), 3 + len(others)) for name, others in more.items())],
        rows=rows,
        best=best_of_columns(rows),
    )


def results_by_domain(evaluation: Evaluation) -> Table:
    """Return one row per domain, with the held-out nDCG@10 of each system."""
    rows = []
    for domain in sorted({domain for domain, _ in evaluation.domains}):
        values = [evaluation.domains.get((domain, system)) for system in evaluation.systems]
        rows.append([domain, *(NONE if value is None else share(value) for value in values)])
    return Table(header=["Domain", *evaluation.systems], rows=rows, best=best_of_rows(rows))


def _bars(ndcg: Mapping[str, float], collection: str, batches: Mapping[str, str]) -> Markup:
    """Draw a bar for each system, in the colour of the batches it was trained on."""
    colours = [charts.colour(batches.get(system)) for system in ndcg]
    return charts.bars(ndcg, colours, f"Bar chart of the nDCG@10 of each system: {collection}.")


def _caption(evaluation: Evaluation) -> str:
    told = {note: None for (name, _), scores in evaluation.scores.items() for note in flaws(scores.others, name)}
    return "; ".join(["Retrieval by system, with the number of queries in brackets", *told])
