"""``batchwright upgrade``: a project takes over the Batchwright that is installed now."""

import argparse
import importlib
from pathlib import Path

from batchwright.home import use_pipeline

ABOUT = "Brings a project up to date with the installed Batchwright, and says which stages that changes."
EXAMPLES = ("pip install --upgrade 'batchwright[pipeline] @ git+URL' && batchwright upgrade",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def main(given: argparse.Namespace) -> str:  # noqa: ARG001
    """Return which stages have changed."""
    use_pipeline()
    return str(importlib.import_module("project.upgrade").main(Path()))
