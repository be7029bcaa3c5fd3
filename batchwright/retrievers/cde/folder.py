"""CDE models on disk: sentence-transformers folders that include the code of their module."""

import json
import shutil
from pathlib import Path

from sentence_transformers import SentenceTransformer

from batchwright.formats.models import loading
from batchwright.formats.prefixes import Prefix
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.common.sentence_model import save_model

CODE = ("contextual_encoder.py", "attention.py", "context.py")


def load_contextual(folder: Path, device: str | None = None) -> SentenceTransformer:
    """Load a folder with this project's code, not with the code in the folder.

    Raises:
        InputError: the folder is damaged.
    """
    with loading(f"model '{folder}'"):
        encoder = ContextualEncoder.load(str(folder), local_files_only=True)
        config = json.loads((folder / "config_sentence_transformers.json").read_text(encoding="utf-8"))
        return SentenceTransformer(modules=[encoder], prompts=config["prompts"], device=device)


def save_contextual(model: SentenceTransformer, folder: Path, prefix: Prefix) -> None:
    """Write ``folder``, which sentence-transformers can load even if this project is not installed."""
    save_model(model, folder, prefix)
    for name in CODE:
        shutil.copy(Path(__file__).with_name(name), folder)
    file = folder / "modules.json"
    modules = json.loads(file.read_text(encoding="utf-8"))
    modules[0]["type"] = f"{Path(CODE[0]).stem}.{ContextualEncoder.__name__}"
    file.write_text(json.dumps(modules, indent=2), encoding="utf-8")
