"""``batchwright stage NAME``: a stage of the pipeline, as ``dvc.yaml`` of one's own project runs it."""

import argparse
import importlib
import os
import sys

from batchwright.core.errors import InputError
from batchwright.core.messages import hint
from batchwright.home import code_root, use_pipeline

ABOUT = "Runs a stage of the pipeline; dvc repro does so for all stages that something changed for."
EXAMPLES = ("batchwright stage ingest", "batchwright stage train biencoder")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", help="a stage of dvc.yaml")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the stage takes: a policy, a run, ...")


def main(given: argparse.Namespace) -> str:
    """Become the stage's process.

    Raises:
        InputError: there is no such stage, or the project was made for other code.
    """
    known = sorted(file.parent.name for file in (code_root() / "stages").glob("*/__main__.py"))
    if given.name.partition(".")[0] not in known:
        raise InputError(f"unknown stage '{given.name}'{hint(given.name, known)}")
    use_pipeline()
    importlib.import_module("project.code").check_digests(given.name.partition(".")[0])
    os.execv(sys.executable, [sys.executable, "-m", f"stages.{given.name}", *given.arguments])
