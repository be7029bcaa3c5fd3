"""``batchwright export``: pairs with their hard negatives as one plain file."""

import argparse
from pathlib import Path

from batchwright.handover.export import export
from batchwright.inspect.project import open_shards

ABOUT = (
    "Writes each pair of some shards once, with hard negatives: columns anchor, positive, negative_1, negative_2, ..."
)
EXAMPLES = (
    "batchwright export data/shards/contextual pairs.parquet",
    "batchwright export data/shards/mined-1 pairs.jsonl --negatives 4",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shards", help="a folder of shards, or its name in data/shards, such as mined-1")
    parser.add_argument("output", type=Path, help="a .parquet or .jsonl file")
    parser.add_argument(
        "--negatives",
        type=int,
        metavar="N",
        help="leave out pairs with fewer hard negatives, cut the rest to N; default: the most that any pair has",
    )


def main(given: argparse.Namespace) -> str:
    """Return what was written."""
    return export(open_shards(given.shards).folder, given.output, given.negatives)
