"""``batchwright export``: pairs with their hard negatives as one plain file."""

import argparse
from pathlib import Path

from batchwright.handover.export import export

ABOUT = (
    "Writes each pair of some shards once, with hard negatives: columns anchor, positive, negative_1, negative_2, ..."
)
EXAMPLES = (
    "batchwright export data/shards/mined-1 pairs.parquet",
    "batchwright export data/shards/mined-1 pairs.jsonl --negatives 4",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shards", type=Path, help="such as data/shards/mined-1")
    parser.add_argument("output", type=Path, help="a .parquet or .jsonl file")
    parser.add_argument("--negatives", type=int, metavar="N", help="hard negatives of each pair; by default, all")


def main(given: argparse.Namespace) -> str:
    """Return what was written."""
    return export(given.shards, given.output, given.negatives)
