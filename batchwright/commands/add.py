"""``batchwright add FILE``: a source of pairs."""

import argparse
import importlib
from pathlib import Path
from typing import Any

from batchwright.home import use_pipeline

ABOUT = "Looks at a file or a folder of pairs, shows five of them, and writes it into params.yaml as a source."
EXAMPLES = (
    "batchwright add faq.csv",
    "batchwright add answers/ --query title --document body --domain support",
    "batchwright add big.parquet --look      # changes nothing",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "path", type=Path, help="Parquet, Arrow, JSON Lines, CSV or TSV, or a folder of them, or of BEIR's"
    )
    parser.add_argument("--query", metavar="COLUMN", help="the column of queries, if its name does not say so")
    parser.add_argument("--document", metavar="COLUMN", help="the column of documents that answer them")
    parser.add_argument("--negatives", metavar="COLUMN", nargs="+", help="columns of hard negatives")
    domain = parser.add_mutually_exclusive_group()
    domain.add_argument("--domain", metavar="NAME", help="the domain of all pairs; by default, the file's name")
    domain.add_argument("--domain-column", metavar="COLUMN", help="the column that names each pair's domain")
    parser.add_argument("--look", action="store_true", help="only look")


def main(given: argparse.Namespace) -> str:
    """Return what there is to see."""
    use_pipeline()
    named = {key: getattr(given, key) for key in ("domain", "domain_column") if getattr(given, key)}
    columns = {key: getattr(given, key) for key in ("query", "document", "negatives") if getattr(given, key)}
    module: Any = importlib.import_module("project.add")
    return str(module.main(given.path, named, columns, only_look=given.look))
