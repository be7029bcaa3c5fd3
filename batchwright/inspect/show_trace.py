"""Prints what became of a pair."""

from textwrap import wrap

from batchwright.inspect.show_batch import others_lines, pair_lines
from batchwright.inspect.terminal import Terminal, cut, fold, plain
from batchwright.inspect.trace import Pair, Reject, Trace

SHOWN = 20
"""Pairs and rejected rows that are listed unless all are asked for."""


def trace_lines(found: Trace, terminal: Terminal, *, full: bool) -> list[str]:
    """Lay out one pair with its batches, or a list of pairs, and the rows that were rejected."""
    most = None if full else SHOWN
    lines = _one(found, terminal, full) if len(found.pairs) == 1 else _many(found.pairs, terminal, most)
    return [*lines, *_rejects(found.rejects, terminal, most)]


def _one(found: Trace, terminal: Terminal, full: bool) -> list[str]:
    pair = found.pairs[0]
    lines = [
        f"{terminal.bold('Pair')} {plain(pair.id)} · {plain(pair.domain)}",
        *wrap(plain(pair.fate), terminal.width),
    ]
    if not found.views:
        return [*lines, *fold(pair.query, terminal.width, None if full else SHOWN)]
    lines += pair_lines(found.views[0], terminal, full=full)
    for view in found.views:
        lines += ["", *others_lines(view, terminal, full=full)]
    return lines


def _many(pairs: list[Pair], terminal: Terminal, most: int | None) -> list[str]:
    lines = [terminal.bold(f"{len(pairs):,} pairs") + "; ask for one by its id, or with more words"] if pairs else []
    for pair in pairs[:most]:
        fate = wrap(plain(f"{pair.id[:12]} · {pair.fate}"), terminal.width - 4)
        lines += [cut(pair.query, terminal.width), *(terminal.dim(f"    {line}") for line in fate)]
    return [*lines, *_more(len(pairs), most)]


def _rejects(rejects: list[Reject], terminal: Terminal, most: int | None) -> list[str]:
    if not rejects:
        return []
    lines = ["", terminal.bold(f"Rejected rows with these words ({len(rejects):,})")]
    cells = [[each.reason, each.source, str(each.row), each.text] for each in rejects[:most]]
    return [*lines, *terminal.table(["reason", "source", "row", "text"], cells, texts=1), *_more(len(rejects), most)]


def _more(count: int, most: int | None) -> list[str]:
    return [f"and {count - most} more; --full shows all"] if most and count > most else []
