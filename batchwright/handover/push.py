"""Push shards or a trained model to the Hugging Face hub."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Literal

from batchwright.core.command import keep_quiet, new_parser, run
from batchwright.core.errors import InputError
from batchwright.formats.models import model_hash
from batchwright.formats.shards import ShardSet

ABOUT = "Puts a folder of shards, or of a trained model, with its card on the Hugging Face hub."
EXAMPLE = "python -m batchwright.handover.push data/shards/contextual me/batches"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``push``, by the names of its parameters."""
    parser.add_argument("folder", type=Path, help="such as data/shards/contextual or models/biencoder")
    parser.add_argument("repository", help="name on the hub, OWNER/NAME; made if it is not there")
    parser.add_argument("--public", action="store_true", help="a new repository is private unless you say this")


def push(folder: Path, repository: str, public: bool = False) -> str:
    """Upload ``folder`` and return a summary. ``HF_ENDPOINT`` and ``HF_TOKEN`` say where and as whom.

    Shards of an earlier push that are no longer part of the set are removed.

    Raises:
        InputError: the folder holds neither valid shards nor a model, or the hub refuses.
    """
    kind = _kind(folder)
    from httpx2 import HTTPError
    from huggingface_hub import HfApi

    hub = HfApi()
    try:
        made = hub.create_repo(repository, repo_type=kind, private=not public, exist_ok=True)
        stale = ["*.arrow"] if kind == "dataset" else None
        hub.upload_folder(
            repo_id=made.repo_id,
            repo_type=kind,
            folder_path=folder,
            delete_patterns=stale,
            ignore_patterns=[".*"],
            commit_message=f"Batchwright {'batches' if kind == 'dataset' else 'model'}",
        )
    except (HTTPError, OSError, RuntimeError, ValueError) as error:  # of the hub, its answers, and failed uploads
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"'{repository}' on {hub.endpoint}: {reason}; check the name, the network and HF_TOKEN (hf auth login)"
        ) from None
    return f"{folder} is at {made.url}"


def _kind(folder: Path) -> Literal["dataset", "model"]:
    """Whether a folder holds shards or a model, after a check of both."""
    if (folder / "manifest.json").is_file():
        ShardSet.open(folder).verify()
        return "dataset"
    if not (folder / "modules.json").is_file():
        raise InputError(f"{folder}: holds neither shards (manifest.json) nor a trained model (modules.json)")
    model_hash(folder)
    return "model"


if __name__ == "__main__":
    parser = new_parser("batchwright.handover.push", ABOUT, EXAMPLE)
    add_arguments(parser)
    given = vars(parser.parse_args())
    keep_quiet()
    run("push", lambda: push(**given))
