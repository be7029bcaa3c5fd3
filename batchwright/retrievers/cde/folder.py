"""The folder of a two-stage encoder: its stages, what its form of context adds to them, and a fitted context.

This file is saved with models, so it must not import this project; what it imports of ours is saved next to it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import snapshot_download
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor

from .context import Context

NEW = {"gate": "gate.safetensors", "null": "sequence.safetensors", "prompts": "prompts.safetensors"}
"""The file with what a form of context adds, by one of its parameters."""
CONTEXT = "context.json"


class Saved(NamedTuple):
    """What a folder holds: the stages, two or one that is both; ``config``, and the parameters of the form."""

    stages: tuple[SentenceTransformer, SentenceTransformer]
    config: dict[str, Any]
    new: dict[str, Tensor]
    context: Context | None


def write(
    folder: Path,
    stages: Mapping[str, SentenceTransformer],
    new: Mapping[str, Tensor],
    context: Context | None,
    *,
    safe_serialization: bool,
) -> None:
    """Write all but the configuration into ``folder``."""
    for name, stage in stages.items():
        stage.save(str(folder / name), create_model_card=False, safe_serialization=safe_serialization)
    save_file(dict(new), folder / next(file for parameter, file in NEW.items() if parameter in new))
    (folder / CONTEXT).unlink(missing_ok=True)
    if context is not None:
        (folder / CONTEXT).write_text(json.dumps(context.texts, ensure_ascii=False), encoding="utf-8")


def locate(name: str, options: Mapping[str, Any]) -> Path:
    """The folder ``name``, or where the hub's model of that name was fetched to."""
    if (folder := Path(name)).is_dir():
        return folder
    where = {key: options[key] for key in ("token", "revision", "local_files_only") if options.get(key) is not None}
    return Path(snapshot_download(name, cache_dir=options.get("cache_folder"), **where))


def read(folder: Path, configuration: str) -> Saved:
    """Read what was written into ``folder``; ``configuration`` is the name of its file.

    Raises:
        ValueError: it was written before contexts had gates.
    """
    config = json.loads((folder / configuration).read_text(encoding="utf-8"))
    if "context_reads_text" in config:
        raise ValueError(
            "an older version of Batchwright trained it, with another way to read a context; train it again"
        )
    names = ["second"] if config.pop("shared", False) else ["first", "second"]
    stages = [SentenceTransformer(str(folder / name), device="cpu", local_files_only=True) for name in names]
    file = {"sequence": NEW["null"], "prompted": NEW["prompts"]}.get(config.get("form"), NEW["gate"])
    texts = folder / CONTEXT
    context = Context(json.loads(texts.read_text(encoding="utf-8"))) if texts.exists() else None
    return Saved((stages[0], stages[-1]), config, load_file(folder / file), context)
