"""Prefixes whose tokens stay out of the pooling.

This file is saved with models, so it must not import this project.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase


def pooled_tokens(
    tokenizer: PreTrainedTokenizerBase, texts: list[str], prefixes: Sequence[str], present: Tensor, length: int
) -> Tensor:
    """Which of the tokens that are ``present`` ``(n, l)`` are pooled: all after a text's prefix; all if no other is.

    ``length`` is where texts are cut.
    """
    offsets = tokenizer(
        texts, padding=True, truncation=True, max_length=length, return_tensors="pt", return_offsets_mapping=True
    )["offset_mapping"]
    lengths = torch.tensor([_prefix_length(text, prefixes) for text in texts])
    begun = ((offsets[:, :, 1] > lengths[:, None]).cumsum(dim=1) > 0) | (lengths == 0)[:, None]
    pooled: Tensor = present * (begun | ~begun.any(dim=1, keepdim=True))
    return pooled


def _prefix_length(text: str, prefixes: Sequence[str]) -> int:
    return max((len(prefix) for prefix in prefixes if text.startswith(prefix)), default=0)
