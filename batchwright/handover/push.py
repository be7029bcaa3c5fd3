"""Push shards or a trained model to the Hugging Face hub."""

from pathlib import Path
from typing import Literal

from httpx2 import HTTPError
from huggingface_hub import HfApi

from batchwright.core.errors import InputError
from batchwright.formats.models import model_hash
from batchwright.formats.shards import ShardSet


def push(folder: Path, repository: str, *, public: bool) -> str:
    """Upload ``folder`` and say where it is. ``HF_ENDPOINT`` and ``HF_TOKEN`` say to which hub and as whom.

    A new repository is private unless ``public``. Shards of an earlier push that the set no longer has are removed.

    Raises:
        InputError: the folder holds neither valid shards nor a model, or the hub refuses.
    """
    kind = _kind(folder)
    hub = HfApi()
    try:
        made = hub.create_repo(repository, repo_type=kind, private=not public, exist_ok=True)
        hub.upload_folder(
            repo_id=made.repo_id,
            repo_type=kind,
            folder_path=folder,
            ignore_patterns=[".*"],
            delete_patterns=["*.arrow"] if kind == "dataset" else None,
            commit_message="Batches of Batchwright" if kind == "dataset" else "Model of Batchwright",
        )
    except (HTTPError, OSError, RuntimeError, ValueError) as error:  # of the hub, its answers, and failed uploads
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"'{repository}' on {hub.endpoint}: {reason}; check the name, the network and HF_TOKEN (hf auth login)"
        ) from None
    return f"{folder} is at {made.url}"


def _kind(folder: Path) -> Literal["dataset", "model"]:
    """Return whether a folder holds shards or a model, and check either."""
    if (folder / "manifest.json").is_file():
        ShardSet.open(folder).verify()
        return "dataset"
    if not (folder / "modules.json").is_file():
        raise InputError(f"{folder}: holds neither shards (manifest.json) nor a trained model (modules.json)")
    model_hash(folder)
    return "model"
