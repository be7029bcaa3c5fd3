"""The prompts that a sentence-transformers model brings, as the prefixes of queries and documents."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from batchwright.core.terminal import shown
from batchwright.formats.models import SIDES, Prefix, Prefixes, Side, loading

FILE = "batchwright.json"
"""What describes a model that was fetched or trained here."""
CONFIGURATION = "config_sentence_transformers.json"
_PROMPTS: dict[Side, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""The names under which sentence-transformers looks for the prompt of a side."""


def configuration(folder: Path, name: str | None = None) -> dict[str, Any]:
    """What sentence-transformers keeps of a model, beside its modules; ``name`` is for messages.

    Raises:
        InputError: it is damaged.
    """
    file = folder / CONFIGURATION
    with loading(f"model '{name or folder}': {CONFIGURATION}"):
        return dict(json.loads(file.read_bytes())) if file.exists() else {}


def own_prefixes(folder: Path, entry: str) -> Prefixes:
    """The prefixes that a model was trained with here, or its prompts for queries and documents.

    Says if it has prompts, but it is not clear which are theirs; ``entry`` of the parameters names the model.

    Raises:
        InputError: its configuration is damaged.
    """
    if (folder / FILE).exists():
        with loading(f"model '{folder}': {FILE}"):
            return Prefixes.model_validate(json.loads((folder / FILE).read_bytes())["prefixes"])
    known = configuration(folder)
    with loading(f"model '{folder}': {CONFIGURATION}"):
        prompts = {prompt: text for prompt, text in (known.get("prompts") or {}).items() if text}
        if wrong := [prompt for prompt, text in prompts.items() if not isinstance(text, str)]:
            raise ValueError(f"the prompt {wrong[0]!r} is no text")
    prefix = Prefix(**{side: _of_side(prompts, side) for side in SIDES})
    if prompts and not (prefix.query or prefix.document):
        print(
            f"warning: {entry}: of the model's prompts {', '.join(map(shown, prompts))}, it is not clear which are for "
            "queries and documents, so none is used; if texts need one, write it into prefixes",
            file=sys.stderr,
        )
    return Prefixes(default=prefix)


def _of_side(prompts: dict[str, str], side: Side) -> str:
    """The prompt of a side: by its name, or the only one whose name ends in such a word, as ``search_query``."""
    for name in _PROMPTS[side]:
        if name in prompts:
            return prompts[name]
    ending = {text for name, text in prompts.items() if re.split(r"[\W_]+", name.lower())[-1] in _PROMPTS[side]}
    return ending.pop() if len(ending) == 1 else ""
