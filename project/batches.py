"""Packed batches as people use them: look into them, compare them, and write them as plain files of pairs."""

from pathlib import Path

from batchwright import export as pairs
from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.inspect import overview
from batchwright.inspect.artifacts import Artifacts, open_shards
from batchwright.inspect.batch import view_batch
from batchwright.inspect.diff import compare
from batchwright.inspect.doubtful import MOST, write_doubtful
from batchwright.inspect.terminal import as_json, as_text
from batchwright.inspect.trace import trace
from batchwright.inspect.views import batch_view, diff_view, overview_view, row_view, trace_view, worst_view


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
        traced = trace(shard_set, Artifacts.of(shard_set), asked)
        return as_json(traced) if json else as_text(*trace_view(traced, full=full))
    if worst:
        batches = overview.worst(shard_set, worst)
        return as_json(batches) if json else as_text(*worst_view(batches, worst))
    summary = overview.overview(shard_set)
    return as_json(summary) if json else as_text(*overview_view(summary))


def _batch(shards: ShardSet, number: int, row: int | None, full: bool, json: bool) -> str:
    view = view_batch(shards, Artifacts.of(shards), number, row)
    lay_out = batch_view if row is None else row_view
    return as_json(view) if json else as_text(*lay_out(view, full=full))


def diff(a: str, b: str, json: bool) -> str:
    """Return how two shard sets differ."""
    difference = compare(open_shards(a), open_shards(b))
    return as_json(difference) if json else as_text(*diff_view(difference))


def export(
    shards: str,
    output: Path,
    negatives: int | None,
    metadata: bool,
    file_format: pairs.FileFormat,
    doubtful: bool,
    most: int | None,
) -> str:
    """Write pairs with their hard negatives, or cells that somebody should judge; return what was written.

    Raises:
        InputError: the options contradict each other, or it cannot be written.
    """
    if doubtful and negatives is not None:
        raise InputError("--negatives is for pairs; leave it out with --doubtful, which has --most")
    if doubtful and metadata:
        raise InputError("--metadata is for pairs; leave it out with --doubtful")
    if doubtful and file_format != "pairs":
        raise InputError("--format is for pairs; leave it out with --doubtful")
    if most is not None and not doubtful:
        raise InputError("--most is for --doubtful; add that, or limit hard negatives with --negatives")
    shard_set = open_shards(shards)
    if doubtful:
        return write_doubtful(shard_set, Artifacts.of(shard_set), output, MOST if most is None else most)
    return pairs.export(shard_set.folder, output, negatives, file_format, metadata=metadata)
