"""Tables of what the systems reach."""

from collections.abc import Iterable, Sequence

from stages.report.evaluation import HELD_OUT, Evaluation
from stages.report.table import NONE, Table, share


def collection_title(name: str) -> str:
    """A collection as a reader knows it."""
    return "Held-out queries" if name == HELD_OUT else name


def results_table(evaluation: Evaluation) -> Table:
    """A row a system, three measures a collection."""
    names = list(evaluation.queries)
    rows = []
    for system in evaluation.systems:
        cells = [system]
        for name in names:
            scores = evaluation.scores.get((name, system))
            cells += [share(scores.ndcg), share(scores.mrr), share(scores.recall)] if scores else [NONE] * 3
        rows.append(cells)
    return Table(
        header=["System"] + ["nDCG@10", "MRR@10", "Recall@100"] * len(names),
        groups=[("", 1), *((f"{collection_title(name)} ({evaluation.queries[name]:,})", 3) for name in names)],
        rows=rows,
        best=_best(rows, _columns(rows)),
    )


def results_by_domain(evaluation: Evaluation) -> Table:
    """A row a domain, held-out nDCG@10 of each system."""
    rows = []
    for domain in sorted({domain for domain, _ in evaluation.domains}):
        values = [evaluation.domains.get((domain, system)) for system in evaluation.systems]
        rows.append([domain, *(NONE if value is None else share(value) for value in values)])
    return Table(header=["Domain", *evaluation.systems], rows=rows, best=_best(rows, _lines(rows)))


def _best(rows: Sequence[Sequence[str]], lines: Iterable[Sequence[tuple[int, int]]]) -> frozenset[tuple[int, int]]:
    """The places of each line that show its highest number: all of them, where several show the same."""
    found: set[tuple[int, int]] = set()
    for line in lines:
        shown = {(row, column): rows[row][column] for row, column in line if rows[row][column] != NONE}
        highest = max((float(text) for text in shown.values()), default=None)
        found |= {place for place, text in shown.items() if float(text) == highest}
    return frozenset(found)


def _columns(rows: Sequence[Sequence[str]]) -> list[list[tuple[int, int]]]:
    return [[(row, column) for row in range(len(rows))] for column in range(1, len(rows[0]))]


def _lines(rows: Sequence[Sequence[str]]) -> list[list[tuple[int, int]]]:
    return [[(row, column) for column in range(1, len(cells))] for row, cells in enumerate(rows)]
