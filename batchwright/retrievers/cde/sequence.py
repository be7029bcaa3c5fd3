"""Texts read behind context vectors, in one sequence, by encoders of the transformers library.

This file is saved with models, so it must not import this project; what it imports of ours is saved next to it.
"""

import inspect
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from .attention import changed_attention, without_position

_MORE = 8  # numbers that heads get wider by; kernels want multiples of 8


def read_behind(
    backbone: PreTrainedModel,
    texts: dict[str, Any],
    rows: Tensor,
    offset: Tensor | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Last hidden states ``(n, l, h)`` of ``texts``, each read in one sequence behind the ``rows`` ``(m, h)``.

    ``texts`` has ``input_ids`` and ``attention_mask`` ``(n, l)``. Rows attend to all, and all to rows, windows or not.
    Rows have no positions, so their order does not matter; tokens have those of a text alone. ``offset`` ``(layers,
    heads, m)`` is added to the scores of rows as keys. With ``positions`` ``(m,)``, below 0 and for a backbone that
    only rotates by them, rows are read like tokens: in order, and windows keep them apart.
    """
    count, ids = len(rows), texts["input_ids"]
    tokens = backbone.get_input_embeddings()(ids)
    before = without_position(backbone, rows).to(tokens.dtype).expand(len(ids), -1, -1)
    present = functional.pad(texts["attention_mask"], (count, 0), value=1)
    inputs = {"inputs_embeds": torch.cat([before, tokens], dim=1), "attention_mask": present}
    taken = inspect.signature(backbone.forward).parameters
    if "position_ids" in taken:
        own = _positions(backbone, ids)
        of_rows = own.new_zeros(count) if positions is None else positions
        inputs["position_ids"] = torch.cat([of_rows.expand(len(own), -1), own], dim=1)
    if "token_type_ids" in taken and "token_type_ids" in texts:
        inputs["token_type_ids"] = functional.pad(texts["token_type_ids"], (count, 0))
    layers = None if offset is None else iter(offset)

    def attend(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **options: Any) -> Any:
        if mask is not None and positions is None:  # windows count rows as tokens
            mask = mask.expand(-1, -1, query.shape[2], -1).clone()
            mask[..., :count] = True
            mask[:, :, :count] = present.bool()[:, None, None]
        if (bias := options.get("position_bias")) is not None:
            options["position_bias"] = functional.pad(bias[..., count:, count:], (count, 0, count, 0))
        if layers is None:
            return sdpa_attention_forward(module, query, key, value, mask, **options)
        width, scale = query.shape[-1], options.get("scaling")
        options["scaling"] = scale = width**-0.5 if scale is None else scale
        query, key, value = _widened(query, key, value, next(layers) / scale)
        output, _ = sdpa_attention_forward(module, query, key, value, mask, **options)
        return output[..., :width], None

    with changed_attention(backbone, lambda _: attend):
        states: Tensor = backbone(**inputs).last_hidden_state
    return states[:, count:]


def _positions(backbone: PreTrainedModel, ids: Tensor) -> Tensor:
    """The positions ``(1 or n, l)`` that the backbone gives tokens by itself: RoBERTa's depend on the padding."""
    embeddings = getattr(backbone, "embeddings", None)
    padding = getattr(embeddings, "padding_idx", None)
    if hasattr(embeddings, "position_embeddings") and isinstance(padding, int):
        present = ids.ne(padding).long()
        return present.cumsum(dim=1) * present + padding
    return torch.arange(ids.shape[1], device=ids.device)[None]


def _widened(query: Tensor, key: Tensor, value: Tensor, shift: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Heads with further numbers, so that ``shift`` ``(heads, m)`` is added to products with the first m keys.

    A mask with a gradient would do the same, but only the slowest kernel takes one, and keeps all products.
    """
    one = functional.pad(query.new_ones(*query.shape[:3], 1), (0, _MORE - 1))
    shifts = functional.pad(shift, (0, key.shape[2] - shift.shape[1]))[..., None]
    shifts = functional.pad(shifts, (0, _MORE - 1)).to(key.dtype).expand(len(key), -1, -1, -1)
    return torch.cat([query, one], dim=3), torch.cat([key, shifts], dim=3), functional.pad(value, (0, _MORE))


@torch.no_grad()
def check_sequence(backbone: PreTrainedModel, layers: int, heads: int) -> None:
    """Check that a text behind rows that have hardly any weight is read as it is alone, and by its last states.

    Raises:
        ValueError: it is not.
    """
    if backbone.config.output_hidden_states:
        raise ValueError("its pooling reads all layers; set parameter 'train.cde.context' to gated")
    table = cast(nn.Embedding, backbone.get_input_embeddings()).weight
    ids = torch.arange(8, device=table.device).view(2, 4) * 7 % (len(table) - 5) + 5
    texts = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    training = backbone.training
    backbone.train(False)
    alone = backbone(**texts).last_hidden_state
    behind = read_behind(backbone, texts, table[:3], table.new_full((layers, heads, 3), -1e4))
    backbone.train(training)
    if not torch.allclose(alone, behind, atol=1e-4, rtol=1e-3):
        raise ValueError(
            f"{type(backbone).__name__} reads a text otherwise when vectors stand before it; set parameter "
            "'train.cde.context' to gated"
        )
