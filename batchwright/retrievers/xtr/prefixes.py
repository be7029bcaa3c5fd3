"""Leaves the tokens of prefixes out of what is retrieved and scored."""

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import MultiVectorEncoder
from torch import Tensor, nn

from batchwright.formats.models import Prefixes


def leave_out(model: MultiVectorEncoder, prefixes: Prefixes) -> None:
    """Let the tokens of prefixes be read, but have no vectors of their own, like special tokens.

    They are the same in all texts, so a query's prefix would retrieve that of every document. A prefix whose last
    letters share a token with the text, as ``un`` in ``unable``, is not recognised.
    """
    heads = prefix_heads(model.tokenizer, prefixes.texts())
    if not heads:
        return

    def mask(module: nn.Module, inputs: Any, features: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
        kept = features["attention_mask"].bool() & ~begin_with(features["input_ids"], heads, padding)
        return {**features, "attention_mask": kept}

    padding = model.tokenizer.pad_token_id
    model[-1].register_forward_hook(mask)  # not a module: sentence-transformers could not load it without our code


def prefix_heads(tokenizer: Any, prefixes: Sequence[str]) -> list[list[int]]:
    """The token ids with which texts begin that have one of ``prefixes``, the longest first."""
    heads: set[tuple[int, ...]] = set()
    empty = tokenizer("")["input_ids"]
    for text in {form for prefix in prefixes for form in (prefix, prefix.rstrip())}:
        alone, whole = tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer(text)["input_ids"]
        first = next((n for n, pair in enumerate(zip(empty, whole, strict=False)) if len(set(pair)) > 1), len(empty))
        if alone:
            heads.add(tuple(whole[: min(first, len(whole) - len(alone)) + len(alone)]))
    return [list(head) for head in sorted(heads, key=lambda head: (-len(head), head))]


def begin_with(ids: Tensor, heads: Sequence[Sequence[int]], padding: int | None) -> Tensor:
    """Which tokens ``(n, l)`` of ``ids`` ``(n, l)`` belong to one of ``heads``, if the text begins with it."""
    places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    padded = (ids != padding).int().argmax(dim=1) if padding is not None else ids.new_zeros(len(ids))  # on the left
    places = places - padded[:, None]
    found, open_ = torch.zeros_like(ids, dtype=torch.bool), torch.ones_like(padded, dtype=torch.bool)
    for head in heads:
        wanted = torch.tensor(head, device=ids.device)
        inside = (places >= 0) & (places < len(head))
        same = ids == wanted[places.clamp(0, len(head) - 1)]
        begins = open_ & ((inside & same).sum(dim=1) == len(head))
        found |= inside & begins[:, None]
        open_ &= ~begins
    return found
