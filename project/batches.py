"""Packed batches as people use them: look into them, compare them, and write them as plain files of pairs."""

from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.handover import export as pairs
from batchwright.inspect.answer import as_json, as_text
from batchwright.inspect.batch import view_batch
from batchwright.inspect.diff import compare
from batchwright.inspect.measures import worst as worst_batches
from batchwright.inspect.overview import overview, overview_lines, worst_lines
from batchwright.inspect.project import Project, open_shards
from batchwright.inspect.show_batch import batch_lines, row_lines
from batchwright.inspect.show_diff import diff_lines
from batchwright.inspect.show_trace import trace_lines
from batchwright.inspect.trace import trace


def show(what: list[str], row: int | None, worst: str | None, shards: str, full: bool, json: bool) -> str:
    """Return a batch, a row of it, what became of a query, the worst batches or, if none is named, an overview.

    Raises:
        InputError: there is no such thing, or the options contradict each other.
    """
    asked = " ".join(what).strip()
    is_batch = asked.isdecimal() and len(asked) < 8  # longer numbers are ids
    if row is not None and not is_batch:
        raise InputError("--row needs the number of a batch before it, as in: batchwright show 12 --row 5")
    if worst and asked:
        raise InputError("--worst takes no batch and no words; leave out one of the two")
    shard_set = open_shards(shards)
    if is_batch:
        return _batch(shard_set, int(asked), row, full, json)
    if asked:
        traced = trace(shard_set, Project.of(shard_set), asked)
        return as_json(traced) if json else as_text(lambda terminal: trace_lines(traced, terminal, full=full))
    if worst:
        batches = worst_batches(shard_set, worst)
        return as_json(batches) if json else as_text(lambda terminal: worst_lines(batches, worst, terminal))
    summary = overview(shard_set)
    return as_json(summary) if json else as_text(lambda terminal: overview_lines(summary, terminal))


def _batch(shards: ShardSet, number: int, row: int | None, full: bool, json: bool) -> str:
    view = view_batch(shards, Project.of(shards), number, row)
    lines = batch_lines if row is None else row_lines
    return as_json(view) if json else as_text(lambda terminal: lines(view, terminal, full=full))


def diff(a: str, b: str, json: bool) -> str:
    """Return how two shard sets differ."""
    difference = compare(open_shards(a), open_shards(b))
    return as_json(difference) if json else as_text(lambda terminal: diff_lines(difference, terminal))


def export(shards: str, output: Path, negatives: int | None) -> str:
    """Write pairs with their hard negatives; return what was written."""
    return pairs.export(open_shards(shards).folder, output, negatives)
