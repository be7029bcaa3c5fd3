"""Texts one after the other instead of padded to the same length, for transformers whose attention can be replaced.

A model's modules read and write padded tensors as before. Only the transformer inside takes out the tokens that are
there, and puts their vectors back; its attention is torch's for texts of varying length.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from trainers.common.passes import send

_NAME = "packed"
_TOKENS, _TEXTS = 2048, 256
"""A pass has a multiple of so many tokens and texts, filled up with tokens that nobody reads, so that few shapes
occur: compiled kernels and memory are reused."""


@dataclass(frozen=True)
class Packing:
    """Where the tokens of padded texts ``(n, l)`` are.

    ``places`` ``(t,)`` int64 are theirs among the ``n * l``, ``positions`` ``(t,)`` int64 theirs in their text, and
    ``starts`` int32 where each text starts among the t, and the last one ends. The first ``present`` are tokens, those
    after them fill up. No text is longer than ``longest``.
    """

    places: Tensor
    positions: Tensor
    starts: Tensor
    present: int
    longest: int

    @classmethod
    def of(cls, attention_mask: NDArray[np.integer[Any]], longest: int) -> Self:
        """Pack the tokens that ``attention_mask`` ``(n, l)`` marks."""
        places = np.flatnonzero(attention_mask)
        missing = -len(places) % _TOKENS
        filling = [longest] * (missing // longest) + [missing % longest]
        lengths = np.concatenate([attention_mask.sum(axis=1), filling])
        lengths = np.concatenate([lengths, np.zeros(-len(lengths) % _TEXTS, lengths.dtype)])
        starts = np.concatenate([[0], lengths.cumsum()])
        positions = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        return cls(
            places=torch.from_numpy(np.concatenate([places, np.zeros(starts[-1] - len(places), np.int64)])),
            positions=torch.from_numpy(positions),
            starts=torch.from_numpy(starts.astype(np.int32)),
            present=len(places),
            longest=longest,
        )

    def on(self, device: torch.device) -> Self:
        """The same on ``device``."""
        places, positions, starts = (send(each, device) for each in (self.places, self.positions, self.starts))
        return replace(self, places=places, positions=positions, starts=starts)


_CURRENT: ContextVar[Packing | None] = ContextVar("packing", default=None)


@contextmanager
def packed(packing: Packing | None) -> Iterator[None]:
    """Let transformers read the padded texts of the block as ``packing`` says; None leaves them padded."""
    token = _CURRENT.set(packing)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def backbones(model: nn.Module) -> list[PreTrainedModel]:
    """The transformers in ``model``, without those inside others."""
    transformers = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    return [one for one in transformers if not any(one in other.children() for other in transformers)]


def pack_texts(model: nn.Module) -> bool:
    """Let all transformers in ``model`` read packed texts inside ``packed``; return whether there are any and all can.

    One that cannot stays as it is. It can if it computes the same packed as padded, which is tried. GPUs before Ampere
    have no such attention.
    """
    if torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 0):
        return False
    return bool(found := [_pack(backbone) for backbone in backbones(model)]) and all(found)


def _pack(backbone: PreTrainedModel) -> bool:
    if backbone.config.output_hidden_states:
        return False  # their shape would be another
    before, forward = backbone.config._attn_implementation, backbone.forward
    backbone.config._attn_implementation = _NAME
    try:
        backbone.forward = _packing(forward, _first_position(backbone))  # sentence-transformers calls the method
        if _same_as_padded(backbone):
            return True
    except (TypeError, ValueError, RuntimeError):
        pass  # it takes no positions, or has an attention of its own
    backbone.forward, backbone.config._attn_implementation = forward, before
    return False


def _packing(forward: Any, first_position: int) -> Any:
    @wraps(forward)
    def read(input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **options: Any) -> Any:
        packing = _CURRENT.get()
        if packing is None or input_ids is None:
            return forward(input_ids=input_ids, attention_mask=attention_mask, **options)
        kinds = options.pop("token_type_ids", None)
        if kinds is not None:
            options["token_type_ids"] = kinds.flatten()[packing.places][None]
        output = forward(
            input_ids=input_ids.flatten()[packing.places][None],
            position_ids=packing.positions[None] + first_position,
            cu_seq_lens_q=packing.starts,
            max_length_q=packing.longest,
            **options,
        )
        rows = output.last_hidden_state[0, : packing.present]
        padded = rows.new_zeros(input_ids.numel(), rows.shape[1])
        padded = padded.index_copy(0, packing.places[: packing.present], rows)
        output.last_hidden_state = padded.view(*input_ids.shape, -1)
        if "pooler_output" in output:
            output.pooler_output = None  # that of the first token of all
        return output

    return read


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int = 0,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention ``(1, t, heads, e)`` of packed queries, keys and values ``(1, heads, t, e)``, or of padded ones.

    In a causal ``module``, tokens attend to those before them. Heads of queries may share one of keys and values.
    """
    if cu_seq_lens_q is None:
        padded: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return padded
    scale, window = options.get("scaling"), options.get("sliding_window")
    causal = bool(getattr(module, "is_causal", False))
    shared = query.shape[1] // key.shape[1]
    key, value = (each if shared == 1 else each.repeat_interleave(shared, dim=1) for each in (key, value))
    query, key, value = (each.squeeze(0).transpose(0, 1).to(value.dtype) for each in (query, key, value))
    before = -1 if window is None else window - 1  # as in transformers' masks
    if not query.is_cuda or query.dtype == torch.float32:
        output = _attend_padded(query, key, value, cu_seq_lens_q, max_length_q, scale, window, causal=causal)
    else:
        starts, longest = cu_seq_lens_q, max_length_q
        sides = (before, 0 if causal else before)
        output = cast(
            Tensor,
            varlen_attn(query, key, value, starts, starts, longest, longest, scale=scale, window_size=sides),
        )
    return output[None], None


def _attend_padded(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor,
    longest: int,
    scale: float | None,
    window: int | None,
    *,
    causal: bool,
) -> Tensor:
    """The same for ``(t, heads, e)``, with padding: torch's attention for varying lengths computes in bfloat16 only."""
    numbers = torch.arange(len(query), device=query.device, dtype=starts.dtype)
    text = torch.searchsorted(starts[1:], numbers, right=True)
    column = numbers - starts[text]

    def pad(rows: Tensor) -> Tensor:
        padded = rows.new_zeros(len(starts) - 1, longest, *rows.shape[1:])
        return padded.index_put((text, column), rows).transpose(1, 2)

    place = torch.arange(longest, device=query.device)
    present = place < starts.diff()[:, None]
    mask = present[:, None, None, :]
    if window is not None:
        mask = mask & ((place[:, None] - place).abs() < window)
    if causal:
        mask = mask & (place[:, None] >= place)
    mask = mask | ~present[:, None, :, None]  # padding, which nobody reads, must attend to something
    output = functional.scaled_dot_product_attention(pad(query), pad(key), pad(value), attn_mask=mask, scale=scale)
    return output.transpose(1, 2)[text, column]


AttentionInterface.register(_NAME, _attend)
AttentionMaskInterface.register(
    _NAME, lambda *given, **options: None if _CURRENT.get() else sdpa_mask(*given, **options)
)


def _first_position(backbone: PreTrainedModel) -> int:
    """The position of a text's first token: RoBERTa's tables begin after that of padding."""
    embeddings = getattr(backbone, "embeddings", None)
    learned = hasattr(embeddings, "position_embeddings")
    padding = getattr(embeddings, "padding_idx", None)
    return padding + 1 if learned and isinstance(padding, int) else 0


@torch.no_grad()
def _same_as_padded(backbone: PreTrainedModel) -> bool:
    """Whether texts of a few lengths, the longest beyond a window, give the same vectors padded and packed."""
    table = cast(nn.Embedding, backbone.get_input_embeddings()).weight
    size = min(getattr(backbone.config, "max_position_embeddings", 32) - 2, 256)
    lengths = np.array([size, 1, size // 2, 3])
    present = (np.arange(size) < lengths[:, None]).astype(np.int64)
    mask = torch.from_numpy(present).to(table.device)
    tokens = torch.arange(mask.numel(), device=mask.device).view(mask.shape) * 7 % (len(table) - 5) + 5
    padding = backbone.config.pad_token_id or 0
    texts = {"input_ids": tokens.masked_fill(mask == 0, padding), "attention_mask": mask}
    training = backbone.training
    backbone.train(False)
    expected = backbone(**texts).last_hidden_state
    with packed(Packing.of(present, size).on(mask.device)):
        found = backbone(**texts).last_hidden_state
        with torch.autocast(mask.device.type, torch.bfloat16):
            backbone(**texts)  # the GPU's kernel does not take all widths of heads
    backbone.train(training)
    return bool(torch.allclose(found[mask == 1], expected[mask == 1], atol=1e-4, rtol=1e-3))
