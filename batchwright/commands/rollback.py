"""``batchwright rollback``: deploy what was deployed before."""

import argparse
import importlib

from batchwright.home import use_pipeline

ABOUT = "Deploys the promotion before the present one. The next retraining does not promote the same again."
EXAMPLES = ("batchwright rollback",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def main(given: argparse.Namespace) -> str:  # noqa: ARG001
    """Return what is deployed."""
    use_pipeline()
    return str(importlib.import_module("project.retrain").roll_back())
