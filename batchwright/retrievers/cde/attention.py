"""Attention to a context, added to the attention of encoders of the transformers library.

This file is saved with models, so it must not import this project.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

Attention = Callable[..., tuple[Tensor, None]]
Mask = Callable[..., Tensor | None]

_LONG, _PARTS = 2048, 16

_CURRENT: ContextVar[tuple[Attention, Mask]] = ContextVar("attention", default=(sdpa_attention_forward, sdpa_mask))
_NAME = f"contextual-{id(_CURRENT)}"  # every folder that is loaded brings a copy of this file


def _attend(*arguments: Any, **options: Any) -> tuple[Tensor, None]:
    return _CURRENT.get()[0](*arguments, **options)


def _mask(*arguments: Any, **options: Any) -> Tensor | None:
    return _CURRENT.get()[1](*arguments, **options)


AttentionInterface.register(_NAME, _attend)
AttentionMaskInterface.register(_NAME, _mask)


def remember(backbone: PreTrainedModel, vectors: Tensor) -> Tensor:
    """Each layer's keys and values ``(layers, 2, heads, j, e)`` of context vectors ``(j, h)``.

    Context vectors attend to one another and nothing else. They have no positions, so their order does not matter.

    Raises:
        ValueError: the backbone does not read vectors, or its attention cannot be extended.
    """
    taken = inspect.signature(backbone.forward).parameters
    if "inputs_embeds" not in taken:
        raise ValueError(f"{type(backbone).__name__} takes no inputs_embeds, so it cannot read context vectors")
    rows = without_position(backbone, vectors)
    positions = torch.zeros(1, len(rows), dtype=torch.int64, device=rows.device)
    seen: list[Tensor] = []

    def record(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, _: Any, **options: Any) -> Any:
        seen.append(torch.stack([key[0], value[0]]))
        return _to_context(module, query, key, value, options)

    with changed_attention(backbone, lambda _: record):
        backbone(inputs_embeds=rows[None], **({"position_ids": positions} if "position_ids" in taken else {}))
    if not seen:
        raise ValueError(f"{type(backbone).__name__} has an attention of its own, which cannot read a context")
    return torch.stack(seen)


def without_position(backbone: PreTrainedModel, vectors: Tensor) -> Tensor:
    """What ``vectors`` are before the backbone adds a learned position 0 to them; a rotary one rotates nothing."""
    table = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    return vectors if table is None else vectors - table.weight[0]


@contextmanager
def reading(backbone: PreTrainedModel, memory: Tensor, gate: Tensor) -> Iterator[None]:
    """Let the backbone's texts attend to ``memory``, which ``remember`` returned, inside the block.

    A head's output is its own attention, plus ``tanh(gate)`` times its attention over the context alone: a softmax of
    its own. ``gate`` is ``(layers, heads)``; at 0 the backbone computes exactly what it computes without a context.
    """
    layers = iter(zip(memory, torch.tanh(gate), strict=True))

    def both(before: Attention) -> Attention:
        def attend(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **options: Any) -> Any:
            own, _ = before(module, query, key, value, mask, **options)
            (keys, values), opened = next(layers)
            parts = _parts(query)
            keys, values = (each.to(query.dtype).expand(len(parts), -1, -1, -1) for each in (keys, values))
            seen, _ = _to_context(module, parts, keys, values, options)
            return torch.addcmul(own, opened.to(own.dtype)[:, None], seen.reshape(own.shape)), None

        return attend

    with changed_attention(backbone, both):
        yield


def _parts(query: Tensor) -> Tensor:
    """Queries ``(n, heads, l, e)`` of one very long text as those of several: a GPU works on texts side by side."""
    texts, heads, length, width = query.shape
    if texts > 1 or length % _PARTS or length < _LONG:
        return query
    return query.transpose(1, 2).reshape(_PARTS, length // _PARTS, heads, width).transpose(1, 2)


def _to_context(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, options: dict[str, Any]) -> Any:
    """Attention ``(n, l, heads, e)`` without masks and positions."""
    plain = options | {"position_bias": None, "is_causal": False}
    return sdpa_attention_forward(module, query, key, value, None, **plain)


@contextmanager
def changed_attention(backbone: PreTrainedModel, change: Callable[[Attention], Attention]) -> Iterator[None]:
    """Replace every layer's attention inside the block by what ``change`` makes of it."""
    before = backbone.config._attn_implementation
    known = before if before in ALL_ATTENTION_FUNCTIONS else "sdpa"
    token = _CURRENT.set((change(ALL_ATTENTION_FUNCTIONS[known]), ALL_MASK_ATTENTION_FUNCTIONS[known]))
    backbone.config._attn_implementation = _NAME
    try:
        yield
    finally:
        backbone.config._attn_implementation = before
        _CURRENT.reset(token)
