"""``batchwright init DIR``: a project of one's own."""

import argparse
import importlib
from pathlib import Path

from batchwright.home import use_pipeline

ABOUT = "Makes a project of your own: a git repository with the pipeline, your parameters, data and results."
EXAMPLES = ("batchwright init my-project",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("folder", type=Path, help="a new folder")


def main(given: argparse.Namespace) -> str:
    """Return what to do next."""
    use_pipeline()
    return str(importlib.import_module("project.init").main(given.folder))
