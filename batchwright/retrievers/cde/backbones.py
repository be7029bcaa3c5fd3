"""Runs encoders of the transformers library on custom input vectors and positions.

This file is saved with models, so it must not import this project.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask


def check_backbone(backbone: PreTrainedModel) -> None:
    """Check that an encoder accepts input vectors and positions.

    Raises:
        ValueError: it takes no ``inputs_embeds``, or it takes no ``position_ids`` and is not a T5.
    """
    taken = inspect.signature(backbone.forward).parameters
    missing = {"inputs_embeds", "position_ids"} - set(taken)
    if missing - ({"position_ids"} if _is_t5(backbone) else set()):
        raise ValueError(
            f"{type(backbone).__name__} takes no {' and no '.join(sorted(missing))}, so it cannot read context "
            "vectors; use a BERT, RoBERTa, ModernBERT, nomic-bert or T5 encoder"
        )


def hidden_states(backbone: PreTrainedModel, rows: Tensor, present: Tensor, context: int) -> Tensor:
    """Last hidden states ``(n, context + l, h)`` of input vectors ``rows``: ``context`` context vectors, then the text.

    All context vectors are at position 0, so their order does not matter. The text's positions start at 0 too, so they
    do not depend on ``context``. Sliding-window layers attend to the context from every position. ``present`` bool
    ``(n, context + l)`` is False for padding.
    """
    positions = torch.arange(rows.shape[1] - context, device=rows.device)
    positions = torch.cat([positions.new_zeros(context), positions])
    return _run(backbone, rows, _mask(backbone, present, positions, context, 0), positions, 0)


def remember(backbone: PreTrainedModel, context: Tensor) -> Tensor:
    """Keys and values ``(layers, 2, heads, j, e)`` of context vectors ``(j, h)`` that attend only to one another."""
    positions = torch.zeros(len(context), dtype=torch.int64, device=context.device)
    with _attention(backbone, _Memory()) as memory:
        _run(backbone, context[None], None, positions, 0)
    return torch.stack(memory.seen)


def hidden_states_with(backbone: PreTrainedModel, memory: Tensor, rows: Tensor, present: Tensor) -> Tensor:
    """Last hidden states ``(n, l, h)`` of a text's ``rows``, which attend to one another and to ``memory``.

    ``memory`` is what ``remember`` returned.
    """
    context = memory.shape[3]
    positions = torch.arange(rows.shape[1], device=rows.device)
    positions = torch.cat([positions.new_zeros(context), positions])
    present = torch.cat([present.new_ones(len(present), context), present], dim=1)
    with _attention(backbone, _Memory(memory)):
        return _run(backbone, rows, _mask(backbone, present, positions, context, context), positions, context)


class _Memory:
    """Prepends the ``given`` keys and values to those of each layer; without ``given``, records each layer's own."""

    def __init__(self, given: Tensor | None = None) -> None:
        self.given, self.seen = given, list[Tensor]()

    def meet(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.given is None:
            self.seen.append(torch.stack([key[0], value[0]]))
            return key, value
        layer = self.given[len(self.seen)]
        self.seen.append(layer)
        before = layer[:, None].expand(-1, len(key), -1, -1, -1)
        return torch.cat([before[0], key], dim=2), torch.cat([before[1], value], dim=2)


_CURRENT: ContextVar[_Memory | None] = ContextVar("memory", default=None)
_NAME = "remembering"


def _attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    memory = _CURRENT.get()
    if memory is not None:
        key, value = memory.meet(key, value)
    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)


AttentionInterface.register(_NAME, _attend)
AttentionMaskInterface.register(_NAME, sdpa_mask)


@contextmanager
def _attention(backbone: PreTrainedModel, memory: _Memory) -> Iterator[_Memory]:
    """Pass every layer's keys and values through ``memory`` inside the block."""
    before, token = backbone.config._attn_implementation, _CURRENT.set(memory)
    backbone.config._attn_implementation = _NAME
    try:
        yield memory
    finally:
        backbone.config._attn_implementation = before
        _CURRENT.reset(token)


def _run(backbone: PreTrainedModel, rows: Tensor, mask: Any, positions: Tensor, remembered: int) -> Tensor:
    """Run the backbone; the first ``remembered`` of ``positions`` have no ``rows`` and are only attended to."""
    if _is_t5(backbone):
        with _relative_positions(backbone, positions, remembered):
            output = backbone(inputs_embeds=rows, attention_mask=mask)
    else:
        own = positions[None, remembered:] + _first_position(backbone)
        output = backbone(inputs_embeds=rows, attention_mask=mask, position_ids=own)
    states: Tensor = output.last_hidden_state
    return states


def _is_t5(backbone: PreTrainedModel) -> bool:
    return backbone.config.model_type in {"t5", "mt5"}


def _first_position(backbone: PreTrainedModel) -> int:
    """The first position id: RoBERTa and similar models number learned positions from after the padding token's."""
    table = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return 0 if padding is None else padding + 1


def _mask(backbone: PreTrainedModel, present: Tensor, positions: Tensor, context: int, remembered: int) -> Any:
    """Attention mask of the rows after the ``remembered`` ones, in the form that the backbone takes."""
    windows = "sliding_attention" in (getattr(backbone.config, "layer_types", None) or ())
    if not windows and not remembered:
        return present.long()
    pairs = present[:, None, :].expand(-1, present.shape[1] - remembered, -1)
    if not windows:
        return _added(backbone, pairs)
    near = (positions[remembered:, None] - positions[None, :]).abs() <= backbone.config.sliding_window
    near[: context - remembered] = near[:, :context] = True
    return {"full_attention": _added(backbone, pairs), "sliding_attention": _added(backbone, pairs & near)}


def _added(backbone: PreTrainedModel, pairs: Tensor) -> Tensor:
    """Convert a boolean mask to one that is added to attention scores, ``(n, 1, rows, remembered + rows)``."""
    nothing = torch.zeros((), dtype=backbone.dtype, device=pairs.device)
    return nothing.masked_fill(~pairs, torch.finfo(backbone.dtype).min)[:, None]


@contextmanager
def _relative_positions(backbone: PreTrainedModel, positions: Tensor, remembered: int) -> Iterator[None]:
    """Make T5 take distances from ``positions``, instead of from the order of its rows, inside the block."""
    encoder: Any = backbone.encoder
    attention = encoder.block[0].layer[0].SelfAttention

    def compute_bias(*_: Any, **__: Any) -> Tensor:
        buckets = attention._relative_position_bucket(
            positions[None, :] - positions[remembered:, None],
            bidirectional=True,
            num_buckets=attention.relative_attention_num_buckets,
            max_distance=attention.relative_attention_max_distance,
        )
        bias: Tensor = attention.relative_attention_bias(buckets)
        return bias.permute(2, 0, 1)[None]

    attention.compute_bias = compute_bias
    try:
        yield
    finally:
        del attention.compute_bias
