"""Cross-encoders, which score a query and a document that they read together."""

import json
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from batchwright.core.errors import InputError
from batchwright.formats.lengths import check_length
from batchwright.formats.models import (
    ModelVersion,
    check_model_watched,
    check_whole,
    loading,
    locate_model,
    model_hash,
)

LIBRARIES = ("torch", "transformers", "tokenizers", "sentence-transformers")
"""What scores depend on."""
_CROSS_ENCODERS = ("ForSequenceClassification", "ForCausalLM")


class Reading(ModelVersion):
    """How a cross-encoder reads."""

    max_length: int = Field(default=512, ge=2)
    """Maximum number of tokens of a query and a document together; longer texts are truncated."""
    batch_size: int = Field(default=32, gt=0)
    """Pairs of texts scored at a time."""


class Reranker:
    """The cross-encoder ``model``, which the parameter group ``group`` names; ``weights`` is its hash.

    Raises:
        InputError: there is no such model, it is not a cross-encoder with one score, or it reads fewer tokens.
    """

    def __init__(self, group: str, model: str, reading: Reading) -> None:
        # Imported here, because packing without a judge needs no torch.
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging

        logging.disable_progress_bar()
        check_model_watched(model)
        folder = locate_model(model, reading)
        self.weights = model_hash(folder)
        self._given, self._lock = (group, model, reading), Lock()
        with loading(f"model '{model}'"):
            _check(model, folder)
            self._model = CrossEncoder(str(folder), max_length=reading.max_length, local_files_only=True).float()
        check_whole(f"model '{model}'", folder, self._model, pooler=True)
        if self._model.num_labels != 1:
            raise InputError(f"model '{model}': gives {self._model.num_labels} scores; name one that gives one")
        check_length(f"{group}: model '{model}'", self._model, reading.max_length)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters: other processes load the model themselves."""
        return Reranker, self._given

    def score(self, texts: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Score each query and document, ``(n,)``, before any sigmoid, which would make the best ones equal.

        The batches depend on nothing but ``texts``, and so do the scores.
        """
        from torch.nn import Identity

        if not texts:
            return np.empty(0, np.float32)
        reading = self._given[2]
        with self._lock:  # a tokenizer cannot be shared by threads; torch itself uses all cores
            scores: NDArray[np.float32] = self._model.predict(
                list(texts), batch_size=reading.batch_size, activation_fn=Identity(), show_progress_bar=False
            )
        return scores


def _check(name: str, folder: Path) -> None:
    """Raise InputError unless a folder holds a cross-encoder; any other encoder would load, and score at random."""
    file = folder / "config_sentence_transformers.json"
    kind = json.loads(file.read_bytes()).get("model_type") if file.exists() else None
    built = json.loads((folder / "config.json").read_bytes()).get("architectures") or ["an unknown model"]
    if kind != "CrossEncoder" and (kind or not built[0].endswith(_CROSS_ENCODERS)):
        raise InputError(f"model '{name}': is not a cross-encoder but {kind or built[0]}; name a reranker")
