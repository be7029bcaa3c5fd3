"""Prints a batch, or one of its rows."""

from collections import Counter
from textwrap import wrap

from batchwright.inspect.batch import BatchView, Cell, Row
from batchwright.inspect.terminal import Terminal, cut, fold, number, plain

SHOWN = 10
"""Rows and masked documents that are shown unless all are asked for."""
LINES, LEFT = 6, 5
"""Lines of a pair's texts, and hardest negatives of a row, that are shown unless all are asked for."""


def batch_lines(view: BatchView, terminal: Terminal, *, full: bool) -> list[str]:
    """Lay out a whole batch: its texts, what is masked and why, and the hardest negatives left."""
    rows = {row.row: row for row in view.rows}
    shown = None if full else SHOWN
    lines = [*_head(view, terminal), "", terminal.bold(f"Pairs{_of(len(view.rows), shown)}")]
    masked = Counter(cell.query for cell in view.masked)
    cells = [
        [str(row.row), str(masked[row.row]), number(row.hardness), str(row.cluster), row.query, row.document]
        for row in view.rows[:shown]
    ]
    lines += terminal.table(["row", "masked", "hardness", "cluster", "query", "document"], cells, texts=2)
    lines += ["", terminal.bold(f"Masked{_of(len(view.masked), shown)}")]
    cells = [
        [
            *(str(cell.query), str(cell.document), name_of(cell.reason or "")),
            *(rows[cell.query].query, rows[cell.document].document),
        ]
        for cell in _spread(view.masked, shown)
    ]
    lines += (
        terminal.table(["row", "other", "reason", "query of the row", "document of the other"], cells, texts=2)
        if cells
        else []
    )
    lines += ["", terminal.bold("Hardest negatives left")]
    cells = [
        [str(cell.query), str(cell.document), f"{cell.score:.3f}", rows[cell.query].query, rows[cell.document].document]
        for cell in view.hardest
    ]
    lines += (
        terminal.table(["row", "other", "score", "query of the row", "document of the other"], cells, texts=2)
        if cells
        else []
    )
    hint = f"all about a row: batchwright show {view.batch} --row {view.masked[0].query if view.masked else 0}"
    return [*lines, *_foot(view, terminal), "", terminal.dim(hint)]


def row_lines(view: BatchView, terminal: Terminal, *, full: bool) -> list[str]:
    """Lay out one row of a batch: its pair, every masked document with its reason, and the hardest negatives left."""
    pair, others = (lines(view, terminal, full=full) for lines in (pair_lines, others_lines))
    return [*_head(view, terminal), "", *pair, "", *others]


def pair_lines(view: BatchView, terminal: Terminal, *, full: bool) -> list[str]:
    """Lay out the texts of a row's pair."""
    own = _own(view)
    texts = (("query", own.query), ("document", own.document))
    return [line for name, text in texts for line in _labelled(name, _folded(text, terminal, full, LINES), terminal)]


def others_lines(view: BatchView, terminal: Terminal, *, full: bool) -> list[str]:
    """Lay out the documents that are masked for a row, and the hardest that are left."""
    rows, own = {row.row: row for row in view.rows}, _own(view)
    score = "" if own.own_score is None else f" · its own document scores {own.own_score:.2f}"
    lines = [
        f"{terminal.bold(f'Epoch {view.epoch}, batch {view.batch}, row {own.row}')} · cluster {own.cluster}",
        f"hardness {number(own.hardness)} · {len(view.masked)} of {view.size - 1} negatives masked{score}",
    ]
    for cell in view.masked[: None if full else SHOWN]:
        lines += [f"{terminal.red(f'masked {cell.document:>4}')} {cut(cell.why or '', terminal.width - 12)}"]
        lines += _labelled("", _folded(rows[cell.document].document, terminal, full, 2), terminal)
    if len(view.masked) > SHOWN and not full:
        lines += [f"{'':<11} and {len(view.masked) - SHOWN} more; --full shows all"]
    for cell in view.hardest[: None if full else LEFT]:
        text = cut(rows[cell.document].document, terminal.width - 18)
        lines += [f"{terminal.green(f'left   {cell.document:>4}')} {cell.score:.2f}  {text}"]
    return [*lines, *_foot(view, terminal)]


def _own(view: BatchView) -> Row:
    return next(row for row in view.rows if row.row == view.focus)


def _folded(text: str, terminal: Terminal, full: bool, most: int) -> list[str]:
    return fold(text, terminal.width - 12, None if full else most)


def name_of(reason: str) -> str:
    """Return a reason as it is printed."""
    return reason.replace("_", " ")


def _head(view: BatchView, terminal: Terminal) -> list[str]:
    clusters = f"{view.clusters} clusters" if view.clusters > 1 else "one cluster"
    of = f"{view.shards} · epoch {view.epoch} · {view.domain} · {view.size} pairs of {clusters}"
    reasons = sorted(view.masked_by.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{count:,} {name_of(name)}" for name, count in reasons)
    share = f"{view.masked_share:.1%} of negatives masked"
    masked = f"hardness {number(view.hardness)} · {share}{f': {listed}' if listed else ''}"
    name = f"Batch {view.batch}"
    return [f"{terminal.bold(name)} · {cut(of, terminal.width - len(name) - 3)}", *wrap(masked, terminal.width)]


def _foot(view: BatchView, terminal: Terminal) -> list[str]:
    return [terminal.dim(plain(line)) for line in view.missing]


def _labelled(label: str, lines: list[str], terminal: Terminal) -> list[str]:
    return [
        f"{terminal.dim(f'{name:<11}')} {line}" for name, line in zip([label, *[""] * len(lines)], lines, strict=False)
    ]


def _of(count: int, shown: int | None) -> str:
    return f" ({shown} of {count:,}; --full shows all)" if shown and count > shown else f" ({count:,})"


def _spread(cells: list[Cell], most: int | None) -> list[Cell]:
    """Return at most this many cells, of as many reasons and rows as possible, in the order given."""
    if most is None or len(cells) <= most:
        return cells
    seen: Counter[tuple[str | None, int]] = Counter()
    turns = []
    for place, cell in enumerate(cells):
        turns.append((seen[cell.reason, cell.query], place))
        seen[cell.reason, cell.query] += 1
    return [cells[place] for place in sorted(place for _, place in sorted(turns)[:most])]
