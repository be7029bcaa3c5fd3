"""Model inputs of many texts, without keeping other threads waiting.

The libraries make Python lists of all tokens, one number at a time. That takes as long as a GPU's step, and the thread
that feeds the GPU cannot run meanwhile.
"""

from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.model import BaseModel
from torch import Tensor

from batchwright.formats.models import Side

_OF_ENCODING = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
Features = dict[str, Any]


class Tokenise:
    """What ``model.preprocess`` returns for texts, which must have their prefix already; ``side`` decides their length.

    The first texts of each side are read both ways. If the results differ, as for models with inputs of their own, the
    library reads the others, too.
    """

    def __init__(self, model: BaseModel | SentenceTransformer) -> None:
        self._model = model
        self._same: dict[Side | None, bool] = {}

    def __call__(self, texts: list[str], side: Side | None = None) -> Features:
        """Model inputs, on the CPU."""
        if self._same.get(side):
            return self._read(texts, side)
        features: Features = dict(self._model.preprocess(texts, task=side))
        if side not in self._same and texts:
            self._same[side] = features.keys() >= {"input_ids", "attention_mask"} and _equal(
                features, self._read(texts, side)
            )
        return features

    def _read(self, texts: list[str], side: Side | None) -> Features:
        features: Features = dict(self._model.preprocess(texts[:1], task=side))  # says how to cut and pad
        tokenizer: Any = getattr(self._model.tokenizer, "backend_tokenizer", None)
        if tokenizer is None or not set(_tensors(features)) <= set(_OF_ENCODING):
            return {}
        encodings = tokenizer.encode_batch_fast(texts)
        for key in _tensors(features):
            numbers = np.array([getattr(each, _OF_ENCODING[key]) for each in encodings], np.int64)
            features[key] = torch.from_numpy(numbers)
        return features


def _tensors(features: Features) -> list[str]:
    return [key for key, each in features.items() if isinstance(each, Tensor)]


def _equal(left: Features, right: Features) -> bool:
    return left.keys() == right.keys() and all(
        torch.equal(each, right[key]) if isinstance(each, Tensor) else each == right[key] for key, each in left.items()
    )
