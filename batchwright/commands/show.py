"""``batchwright show``: a batch, a row of it, what became of a query, or the worst batches."""

import argparse

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.inspect.answer import as_json, as_text
from batchwright.inspect.batch import view_batch
from batchwright.inspect.measures import ORDERS, worst
from batchwright.inspect.overview import overview, overview_lines, worst_lines
from batchwright.inspect.project import Project, open_shards
from batchwright.inspect.show_batch import batch_lines, row_lines
from batchwright.inspect.show_trace import trace_lines
from batchwright.inspect.trace import trace

ABOUT = "Shows batches: their texts, what is masked and why, the hardest negatives left, and what became of a query."
EXAMPLES = (
    "batchwright show                        # all batches at a glance",
    "batchwright show 12                     # batch 12",
    "batchwright show 12 --row 5             # its row 5, with every masked document",
    "batchwright show sort a list            # what became of the queries with these words",
    "batchwright show 0140e601               # or of the pair whose id begins so",
    "batchwright show --worst masked         # batches with the most masked negatives",
    "batchwright show 12 --shards random     # of data/shards/random, or of any folder of shards",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "what", nargs="*", help="the number of a batch, words of a query, or the beginning of a pair's id"
    )
    parser.add_argument("--row", type=int, metavar="N", help="show one row of the batch")
    parser.add_argument("--worst", choices=list(ORDERS), help="list the worst batches")
    parser.add_argument("--shards", default="contextual", metavar="FOLDER", help="default: data/shards/contextual")
    parser.add_argument("--full", action="store_true", help="show whole texts and lists")
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(given: argparse.Namespace) -> str:
    """Return what was asked for, as text or JSON."""
    asked = " ".join(given.what).strip()
    number = asked.isdecimal() and len(asked) < 8  # longer numbers are ids
    if given.row is not None and not number:
        raise InputError("--row needs the number of a batch before it, as in: batchwright show 12 --row 5")
    if given.worst and asked:
        raise InputError("--worst takes no batch and no words; leave out one of the two")
    shards = open_shards(given.shards)
    if number:
        return _batch(shards, int(asked), given)
    if asked:
        return _trace(shards, asked, given)
    return _worst(shards, given) if given.worst else _overview(shards, given)


def _batch(shards: ShardSet, number: int, given: argparse.Namespace) -> str:
    found = view_batch(shards, Project.of(shards), number, given.row)
    lines = batch_lines if given.row is None else row_lines
    return as_json(found) if given.json else as_text(lambda terminal: lines(found, terminal, full=given.full))


def _trace(shards: ShardSet, asked: str, given: argparse.Namespace) -> str:
    found = trace(shards, Project.of(shards), asked)
    return as_json(found) if given.json else as_text(lambda terminal: trace_lines(found, terminal, full=given.full))


def _worst(shards: ShardSet, given: argparse.Namespace) -> str:
    found = worst(shards, given.worst)
    return as_json(found) if given.json else as_text(lambda terminal: worst_lines(found, given.worst, terminal))


def _overview(shards: ShardSet, given: argparse.Namespace) -> str:
    found = overview(shards)
    return as_json(found) if given.json else as_text(lambda terminal: overview_lines(found, terminal))
