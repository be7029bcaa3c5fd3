"""``batchwright diff A B``: how two shard sets differ."""

import argparse

from batchwright.inspect.answer import as_json, as_text
from batchwright.inspect.diff import compare
from batchwright.inspect.project import open_shards
from batchwright.inspect.show_diff import diff_lines

ABOUT = "Compares two shard sets: parameters, pairs, who meets whom, and hardness and masks by domain."
EXAMPLES = (
    "batchwright diff random contextual      # of data/shards",
    "batchwright diff ../before/data/shards/contextual data/shards/contextual",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("a", metavar="A", help="a folder of shards, or its name in data/shards")
    parser.add_argument("b", metavar="B", help="another one")
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(given: argparse.Namespace) -> str:
    """Return the difference as text or JSON."""
    found = compare(open_shards(given.a), open_shards(given.b))
    return as_json(found) if given.json else as_text(lambda terminal: diff_lines(found, terminal))
