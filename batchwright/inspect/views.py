"""What ``batchwright show`` and ``batchwright diff`` print, from top to bottom."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import RenderableType

from batchwright.inspect.batch import BatchView, Cell, Row
from batchwright.inspect.diff import EXAMPLES, Difference
from batchwright.inspect.overview import Overview, Worst
from batchwright.inspect.terminal import excerpt, heading, labelled, line, measure, table, words
from batchwright.inspect.trace import Pair, Reject, Trace

View = list[RenderableType]

ROWS, LINES, LEFT, NEGATIVES, PAIRS = 10, 6, 5, 5, 20
"""Shown unless all is asked for: rows and masked documents of a batch, lines of a text, hardest negatives of a row, its
own hard negatives, and pairs or rejected rows that have the words."""
WORST = {
    "easiest": "far easier than others of their domain and epoch",
    "hardest": "far harder than others of their domain and epoch",
    "masked": "most of their negatives masked",
    "repeated": "most pairs met in an earlier epoch",
}


def overview_view(overview: Overview) -> View:
    """Lay out a shard set at a glance."""
    batches = f"{overview.batches:,} {overview.policy} batches of {overview.batch_size}"
    rows = [
        [
            *(str(group["domain"]), str(group["epoch"]), f"{group['batches']:,}", str(group["first_batch"])),
            *(measure(float(group["hardness"])), f"{group['masked_share']:.1%}", f"{group['rows_mostly_masked']:,}"),
        ]
        for group in overview.domains
    ]
    epochs = enumerate(zip(overview.left_over, overview.met_before, strict=True))
    return [
        line((overview.shards, "bold"), f" · {batches} in {overview.epochs} epochs, seed {overview.seed}", wrap=True),
        "",
        table(["domain", "epoch", "batches", "first batch", "hardness", "masked", "rows mostly masked"], rows),
        "",
        table(
            ["epoch", "pairs left over", "of two pairs in a batch, met before"],
            [[str(epoch), f"{left:,}", f"{met:.1%}"] for epoch, (left, met) in epochs],
        ),
    ]


def worst_view(batches: Sequence[Worst], by: str) -> View:
    """Lay out the worst batches."""
    rows = [
        [
            *(str(batch.batch), str(batch.epoch), batch.domain, measure(batch.hardness), measure(batch.unusual, "+")),
            *(f"{batch.masked_share:.1%}", f"{batch.met_before:.1%}"),
        ]
        for batch in batches
    ]
    return [
        heading(f"Worst batches: {WORST[by]}"),
        table(["batch", "epoch", "domain", "hardness", "than others", "masked", "met before"], rows),
    ]


def batch_view(view: BatchView, *, full: bool) -> View:
    """Lay out a whole batch: its texts, what is masked and why, and the hardest negatives left."""
    rows = {row.row: row for row in view.rows}
    most = None if full else ROWS
    masked = Counter(cell.query for cell in view.masked)
    said = any(map(_said, view.rows))
    pairs = [
        [
            *(str(row.row), str(masked[row.row]), measure(row.hardness), str(row.cluster), row.query, row.document),
            *([", ".join(f"{name}: {text}" for name, text in _said(row).items())] if said else []),
        ]
        for row in view.rows[:most]
    ]
    return [
        *_head(view),
        "",
        heading(f"Pairs{_of(len(view.rows), most)}"),
        table(["row", "masked", "hardness", "cluster", "query", "document", *(["metadata"] if said else [])], pairs),
        "",
        heading(f"Masked{_of(len(view.masked), most)}"),
        *_cells("reason", ((_reason(cell.reason or ""), cell) for cell in _spread(view.masked, most)), rows),
        "",
        heading("Hardest negatives left"),
        *_cells("score", ((measure(cell.score), cell) for cell in view.hardest), rows),
        *_missing(view),
        "",
        line((f"all about a row: batchwright show {view.batch} --row {min(masked, default=0)}", "dim")),
    ]


def row_view(view: BatchView, *, full: bool) -> View:
    """Lay out one row of a batch: its pair, every masked document with its reason, and the hardest negatives left."""
    return [*_head(view), "", *_pair(view, full=full), "", *_others(view, full=full)]


def trace_view(trace: Trace, *, full: bool) -> View:
    """Lay out one pair with its batches, or a list of pairs, and the rows that were rejected."""
    most = None if full else PAIRS
    pairs = _one_pair(trace, most, full=full) if len(trace.pairs) == 1 else _many_pairs(trace.pairs, most)
    return [*pairs, *_rejects(trace.rejects, most)]


def diff_view(difference: Difference) -> View:
    """Lay out how two shard sets differ."""
    pairs, met = difference.pairs, difference.meet_in_both
    return [
        heading(f"A  {difference.a}"),
        heading(f"B  {difference.b}"),
        "",
        _parameters(difference),
        "",
        line(("Pairs", "bold"), f"  {pairs.a:,} in A, {pairs.b:,} in B, {difference.both:,} in both"),
        *_changed_pairs("lost", difference.lost, difference),
        *_changed_pairs("gained", difference.gained, difference),
        *(
            [line(f"{difference.other_negatives:,} of both have other hard negatives in their first batches")]
            * (difference.other_negatives > 0)
        ),
        "",
        line(("Meetings", "bold"), "  of two pairs in a batch"),
        line(f"of A's, {_share(met.a)} take place in B too; of B's, {_share(met.b)} in A"),
        "",
        heading("Batches by domain and epoch"),
        table(
            ["domain", "epoch", "batches A", "B", "hardness A", "B", "masked A", "B"],
            [
                [
                    *(group.domain, str(group.epoch), _value(group.batches.a), _value(group.batches.b)),
                    *(measure(group.hardness.a), measure(group.hardness.b)),
                    *(_share(group.masked_share.a), _share(group.masked_share.b)),
                ]
                for group in difference.groups
            ],
        ),
        "",
        heading("Masked share of negatives, by reason"),
        table(
            ["reason", "A", "B"],
            [[_reason(side.name), _share(side.a), _share(side.b)] for side in difference.masked_by],
        ),
    ]


def _head(view: BatchView) -> View:
    clusters = f"{view.clusters} clusters" if view.clusters > 1 else "one cluster"
    reasons = sorted(view.masked_by.items(), key=lambda item: -item[1])
    counts = ", ".join(f"{count:,} {_reason(name)}" for name, count in reasons)
    share = f"{view.masked_share:.1%} of negatives masked{f': {counts}' if counts else ''}"
    where = f" · {view.shards} · epoch {view.epoch} · {view.domain} · {view.size} pairs of {clusters}"
    return [
        line((f"Batch {view.batch}", "bold"), where),
        line(f"hardness {measure(view.hardness)} · {share}", wrap=True),
    ]


def _cells(title: str, cells: Iterable[tuple[str, Cell]], rows: dict[int, Row]) -> View:
    """Lay out what is said of cells, with their texts; nothing if there are none."""
    listed = [
        [str(cell.query), str(cell.document), value, rows[cell.query].query, rows[cell.document].document]
        for value, cell in cells
    ]
    return [table(["row", "other", title, "query of the row", "document of the other"], listed)] if listed else []


def _pair(view: BatchView, *, full: bool) -> View:
    """Lay out the texts of a row's pair, and its own hard negatives."""
    row, most = _focus(view), None if full else LINES
    texts = {"query": row.query, "document": row.document, **_said(row)}
    pair = [labelled(words(name), excerpt(text, most)) for name, text in texts.items()]
    negatives = row.negatives[: None if full else NEGATIVES]
    more = len(row.negatives) - len(negatives)
    return [
        *pair,
        *(labelled("negative", excerpt(text, None if full else 2)) for text in negatives),
        *([line(f"{'':<11} and {more} more; --full shows all")] if more else []),
    ]


def _said(row: Row) -> dict[str, str]:
    """What the source says of a row's pair beside its texts."""
    return {**({} if row.weight == 1 else {"weight": f"{row.weight:g}"}), **row.metadata}


def _others(view: BatchView, *, full: bool) -> View:
    """Lay out the documents that are masked for a row, and the hardest that are left."""
    rows, row = {row.row: row for row in view.rows}, _focus(view)
    score = "" if row.own_score is None else f" · its own document scores {row.own_score:.2f}"
    lines: View = [
        line((f"Epoch {view.epoch}, batch {view.batch}, row {row.row}", "bold"), f" · cluster {row.cluster}"),
        line(f"hardness {measure(row.hardness)} · {len(view.masked)} of {view.size - 1} negatives masked{score}"),
    ]
    for cell in view.masked[: None if full else ROWS]:
        document = excerpt(rows[cell.document].document, None if full else 2)
        lines += [line((f"masked {cell.document:>4}", "red"), f" {cell.why or ''}"), labelled("", document)]
    if len(view.masked) > ROWS and not full:
        lines.append(line(f"{'':<11} and {len(view.masked) - ROWS} more; --full shows all"))
    for cell in view.hardest[: None if full else LEFT]:
        text = words(rows[cell.document].document)
        lines.append(line((f"left   {cell.document:>4}", "green"), f" {cell.score:.2f}  {text}"))
    return [*lines, *_missing(view)]


def _focus(view: BatchView) -> Row:
    return next(row for row in view.rows if row.row == view.focus)


def _missing(view: BatchView) -> View:
    return [line((missing, "dim"), wrap=True) for missing in view.missing]


def _reason(name: str) -> str:
    return name.replace("_", " ")


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


def _one_pair(trace: Trace, most: int | None, *, full: bool) -> View:
    pair = trace.pairs[0]
    head: View = [line(("Pair", "bold"), f" {pair.id} · {pair.domain}"), line(pair.fate, wrap=True)]
    if not trace.views:
        return [*head, excerpt(pair.query, most)]
    batches = [part for view in trace.views for part in ("", *_others(view, full=full))]
    return [*head, *_pair(trace.views[0], full=full), *batches]


def _many_pairs(pairs: list[Pair], most: int | None) -> View:
    lines: View = []
    if pairs:
        lines.append(line((f"{len(pairs):,} pairs", "bold"), "; ask for one by its id, or with more words"))
    for pair in pairs[:most]:
        lines += [line(words(pair.query)), line((f"    {pair.id[:12]} · {pair.fate}", "dim"), wrap=True)]
    return [*lines, *_more(len(pairs), most)]


def _rejects(rejects: list[Reject], most: int | None) -> View:
    if not rejects:
        return []
    rows = [[reject.reason, reject.source, str(reject.row), reject.text] for reject in rejects[:most]]
    return [
        "",
        heading(f"Rejected rows with these words ({len(rejects):,})"),
        table(["reason", "source", "row", "text"], rows),
        *_more(len(rejects), most),
    ]


def _more(count: int, most: int | None) -> View:
    return [line(f"and {count - most} more; --full shows all")] if most and count > most else []


def _parameters(difference: Difference) -> RenderableType:
    if not difference.parameters:
        return line("Same policy, seed, models and parameters")
    return table(["differs", "A", "B"], [[side.name, _value(side.a), _value(side.b)] for side in difference.parameters])


def _changed_pairs(how: str, ids: dict[str, list[str]], difference: Difference) -> View:
    counts = [line(f"{len(of_domain):,} {how} in {domain}") for domain, of_domain in ids.items()]
    shown = sorted(pair for of_domain in ids.values() for pair in of_domain)[:EXAMPLES]
    examples = [line((f"    {pair[:12]}  ", "dim"), words(difference.examples[pair])) for pair in shown]
    return [*counts, *examples]


def _value(value: Any) -> str:
    return "-" if value is None else str(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"
