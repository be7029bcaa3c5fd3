"""Tables of retrieval quality."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from docs.rows import Lines, by_seed, compared, read_files
from stages.report.differences import differences_table, read_differences
from stages.report.evaluation import read_evaluation
from stages.report.sections import experiments, results
from stages.report.table import share


def results_table(files: Sequence[Path]) -> Lines:
    """One row per system in the files, as in the report."""
    evaluation = read_evaluation(files, need_tables=False)
    table = results.results_table(evaluation)
    collections = [name.replace("_", "-") for name in evaluation.collections for _ in results.MEASURES]
    header = [f"{name} {measure}" for name, measure in zip(collections, table.header[1:], strict=True)]
    return [["", *header], *table.rows]


def gains_table(files: Sequence[Path]) -> Lines:
    """One row per run: what it gains over its start, BM25 and random batches, as in the report."""
    (file,) = files
    table = differences_table(read_differences(file))
    groups = [group for group, span in table.groups or [] for _ in range(span)]
    several = len(set(groups)) > 2
    names = [f"{group}, {name}" if several else name for group, name in zip(groups, table.header, strict=True)]
    return [["", *names[1:]], *table.rows]


def runs_table(files: Sequence[Path]) -> Lines:
    """One row per setting: mean and spread over seeds, as in the report."""
    table = experiments.summarise("", read_files(files)).table
    return [table.header, *table.rows]


def quality_table(files: Sequence[Path]) -> Lines:
    """One row per setting: nDCG@10 on the domains trained on and on all others.

    Each is a mean over seeds, with the difference to the first setting, paired by seed, and its standard error. There
    are two columns for each set of training domains, and for each number of epochs if these differ.
    """
    rows = read_files(files)
    kinds = list(dict.fromkeys((row["domains"], row["epochs"]) for row in rows))
    labels = [names if " " not in names else f"{len(names.split())} domains" for names, _ in kinds]
    if len({epochs for _, epochs in kinds}) > 1:
        labels = [f"{label}, {epochs} epochs" for label, (_, epochs) in zip(labels, kinds, strict=True)]
    lines = [["", *(f"{label}, {where}" for label in labels for where in ("home", "elsewhere"))]]
    settings = list(dict.fromkeys(row["setting"] for row in rows))

    def found(setting: str, kind: tuple[str, str], where: str) -> dict[str, float]:
        own = [row for row in rows if (row["setting"], row["domains"], row["epochs"]) == (setting, *kind)]
        return by_seed(own, f"ndcg@10 {where}")

    for setting in settings:
        places = [(kind, where) for kind in kinds for where in ("home", "elsewhere")]
        lines.append([setting, *(compared(found(setting, *place), found(settings[0], *place)) for place in places)])
    return lines


def tokens_table(files: Sequence[Path]) -> Lines:
    """One row per training score and collection: nDCG@10 by number of tokens retrieved, and the cost of search.

    Differences are to the first score, paired by seed.
    """
    rows = read_files(files)
    ways = [key for key in rows[0] if key.startswith("ndcg@10 ")]
    costs = {"candidates 100": "candidates, 100", "imputed 100": "imputed, 100"}
    lines = [["nDCG@10 by tokens retrieved", *(way.removeprefix("ndcg@10 ") for way in ways), *costs.values()]]
    kinds = list(dict.fromkeys(row["score"] for row in rows))
    for collection in dict.fromkeys(row["collection"] for row in rows):
        first, *_ = by_kind = [
            [row for row in rows if (row["collection"], row["score"]) == (collection, kind)] for kind in kinds
        ]
        for kind, found in zip(kinds, by_kind, strict=True):
            shown = [compared(by_seed(found, way), by_seed(first, way)) for way in ways]
            candidates, imputed = (statistics.mean(float(row[cost]) for row in found) for cost in costs)
            lines.append([f"{kind}, {collection}", *shown, f"{candidates:,.0f}", share(imputed)])
    return lines
