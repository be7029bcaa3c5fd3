"""``batchwright retrain``: what a scheduler runs every night."""

import argparse
import importlib
import sys
from typing import Any

from batchwright.home import use_pipeline

ABOUT = "Trains again on what came since, and publishes the models if they are not worse than the deployed ones."
EXAMPLES = ("batchwright retrain     # exit code 0: promoted, 1: failed, 3: nothing new, 4: rejected",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def main(given: argparse.Namespace) -> str:  # noqa: ARG001
    """Return what came of it, if that is a promotion; otherwise print it and exit with its code."""
    use_pipeline()
    outcome: Any = importlib.import_module("project.retrain").main()
    text = f"retrain: {outcome.kind}: {outcome.text}"
    if outcome.code:
        print(text)
        sys.exit(outcome.code)
    return text
