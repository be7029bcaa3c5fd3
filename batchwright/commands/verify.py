"""``batchwright verify``: find damage on disk."""

import argparse
from pathlib import Path

from batchwright.integrity.verify import verify

ABOUT = "Compares artifacts with the checksums that were written when they were made, and names what is damaged."
EXAMPLES = ("batchwright verify", "batchwright verify data/shards/contextual", "batchwright verify --mend")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("artifact", type=Path, nargs="?", help="a folder or file; all outputs of the stages by default")
    parser.add_argument("--mend", action="store_true", help="remove what is damaged, so that dvc repro makes it again")


def main(given: argparse.Namespace) -> str:
    """Return what was found."""
    return verify(given.artifact, mend=given.mend)
