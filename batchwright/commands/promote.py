"""``batchwright promote``: deploy by hand."""

import argparse
import importlib

from batchwright.home import use_pipeline

ABOUT = "Deploys the current commit, or an earlier promotion: moves the branch that production follows."
EXAMPLES = ("batchwright promote", "batchwright promote promoted-3")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", help="an earlier promotion, a tag such as promoted-3")


def main(given: argparse.Namespace) -> str:
    """Return what is deployed."""
    use_pipeline()
    return str(importlib.import_module("project.retrain").promote(given.name))
