"""How long texts are, in the tokens of the models that read them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from batchwright.core.errors import InputError
from batchwright.formats.models import ModelVersion, locate_model
from project.add.kinds import Entry

SAMPLE = 1_000


def cut_shares(texts: Sequence[str], params: dict[str, Any]) -> dict[str, float]:
    """Return the share of ``texts`` that each model of ``params.yaml`` cuts off at its ``max_length``.

    Models without a tokenizer on this machine are left out.
    """
    found = {}
    for group, name, model in _models(params):
        try:
            file = locate_model(model["name"], _version(model)) / "tokenizer.json"
        except InputError:
            continue
        if file.is_file():
            tokenizer = Tokenizer.from_file(str(file))
            tokenizer.no_truncation()
            lengths = np.array([len(each.ids) for each in tokenizer.encode_batch(list(texts[:SAMPLE]))])
            limit = int(model["max_length"])
            found[f"{group}.{name}.max_length ({limit} tokens)"] = float(np.mean(lengths > limit))
    return found


def _version(model: Entry) -> ModelVersion:
    return ModelVersion(**{name: model[name] for name in ModelVersion.model_fields if name in model})


def _models(params: dict[str, Any]) -> list[tuple[str, str, Entry]]:
    groups = {"embed.models": params.get("embed", {}).get("models", {}), "start_models": params.get("start_models", {})}
    return [
        (group, name, model)
        for group, models in groups.items()
        for name, model in models.items()
        if "name" in model and model.get("max_length")
    ]
