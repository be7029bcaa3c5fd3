"""``batchwright push``: shards or a trained model to the Hugging Face hub."""

import argparse
import os
from pathlib import Path

from batchwright.core.errors import InputError

ABOUT = "Puts a folder of shards, or of a trained model, with its card on the Hugging Face hub."
EXAMPLES = (
    "batchwright push data/shards/contextual me/batches",
    "batchwright push models/biencoder me/encoder --public",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("folder", type=Path, help="such as data/shards/contextual or models/biencoder")
    parser.add_argument("repository", help="name on the hub, OWNER/NAME; made if it is not there")
    parser.add_argument("--public", action="store_true", help="a new repository is private unless you say this")


def main(given: argparse.Namespace) -> str:
    """Return where the folder is now."""
    os.environ.pop("HF_HUB_DISABLE_PROGRESS_BARS", None)  # uploads take long; the hub shows how far they are
    try:
        from batchwright.handover.push import push
    except ModuleNotFoundError as error:  # the other commands need no more than the library itself
        raise InputError(f"'{error.name}' is not installed; run: pip install 'batchwright[retrievers]'") from None
    return push(given.folder, given.repository, public=given.public)
