"""A cross-encoder that judges cells in doubt: pairs about as alike as a false negative must be."""

import json
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.formats.lengths import check_length
from batchwright.formats.models import check_model_watched, check_whole, loading, locate_model, model_hash
from batchwright.formats.negatives import Negatives
from stages.pack.params import JudgeParams

LIBRARIES = ("torch", "transformers", "tokenizers", "sentence-transformers")
"""What its scores depend on."""
_CROSS_ENCODERS = ("ForSequenceClassification", "ForCausalLM")


class Judge:
    """Scores a query and a document read together; ``weights`` is the hash of the model.

    Raises:
        InputError: there is no such model, it is not a cross-encoder with one score, or it reads fewer tokens.
    """

    def __init__(self, params: JudgeParams) -> None:
        # Imported here, because without a judge packing needs no torch.
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        check_model_watched(params.model)
        folder = locate_model(params.model, params)
        self.weights = model_hash(folder)
        self._params, self._lock = params, Lock()
        with loading(f"model '{params.model}'"):
            _check(params.model, folder)
            self._model = CrossEncoder(str(folder), max_length=params.max_length, local_files_only=True).float()
        check_whole(f"model '{params.model}'", folder, self._model, pooler=True)
        if self._model.num_labels != 1:
            raise InputError(f"model '{params.model}': gives {self._model.num_labels} scores; name one that gives one")
        check_length(f"pack.judge: model '{params.model}'", self._model, params.max_length)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters: other processes load the model themselves."""
        return Judge, (self._params,)

    def in_doubt(
        self, negatives: Negatives, rows: NDArray[np.int64], scores: NDArray[np.float32], likeness: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Which cells ``(B, B)`` are about as alike as they must be, and score high enough for the surrogate.

        Where a domain has no such limit, nothing is in doubt.
        """
        limits = negatives.limits(rows)
        low, high = limits - self._params.below, limits + self._params.above
        near: NDArray[np.bool_] = (likeness >= low) & (likeness < high)
        return near & (scores >= negatives.thresholds[rows][:, None])

    def answers(self, queries: Sequence[str], documents: Sequence[str], asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the cells ``asked`` ``(B, B)`` hold a document that answers the query about as well as its own.

        Only these cells, and the own documents of their queries, are scored.
        """
        found = np.zeros_like(asked)
        rows, columns = np.nonzero(asked)
        own = np.unique(rows)
        cells = np.concatenate([np.stack([own, own]), np.stack([rows, columns])], axis=1).T.tolist()
        scores = self._score([(queries[i], documents[j]) for i, j in cells])
        lowest = np.full(len(asked), np.inf, np.float32)
        lowest[own] = scores[: len(own)] - np.float32(self._params.margin)
        found[rows, columns] = scores[len(own) :] >= lowest[rows]
        return found

    def _score(self, texts: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        from torch.nn import Identity

        if not texts:
            return np.empty(0, np.float32)
        # Logits: a sigmoid would make the best ones equal. One thread at a time, because a tokenizer cannot be shared;
        # torch itself uses all cores. The batches depend on nothing but the training batch, and so do the scores.
        with self._lock:
            scores: NDArray[np.float32] = self._model.predict(
                list(texts), batch_size=self._params.batch_size, activation_fn=Identity(), show_progress_bar=False
            )
        return scores


def _check(name: str, folder: Path) -> None:
    """Raise InputError unless a folder holds a cross-encoder; any other encoder would load, and score at random."""
    file = folder / "config_sentence_transformers.json"
    kind = json.loads(file.read_bytes()).get("model_type") if file.exists() else None
    built = json.loads((folder / "config.json").read_bytes()).get("architectures") or ["an unknown model"]
    if kind != "CrossEncoder" and (kind or not built[0].endswith(_CROSS_ENCODERS)):
        raise InputError(f"model '{name}': is not a cross-encoder but {kind or built[0]}; name a reranker")
