"""Decoders that must rely on the encoder's h0, its last state at CLS, which is all that they see of it."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from trainers.pretraining.windows import hidden_positions


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a decoder takes over from its encoder; ``positions`` is how many tokens that reads."""

    width: int
    heads: int
    feed_forward: int
    positions: int
    dropout: float

    @classmethod
    def of(cls, encoder: PreTrainedModel, length: int) -> "Shape":
        """The shape of a BERT, RoBERTa, ModernBERT or the like; one without position embeddings reads ``length``."""
        config = encoder.config
        kept = [m.padding_idx for name, m in encoder.named_modules() if name.endswith("position_embeddings")]
        first = next((index + 1 for index in kept if index is not None), 0)  # RoBERTa counts from its padding on
        return cls(
            width=config.hidden_size,
            heads=config.num_attention_heads,
            feed_forward=getattr(config, "intermediate_size", 4 * config.hidden_size),
            positions=getattr(config, "max_position_embeddings", length + first) - first,
            dropout=getattr(config, "hidden_dropout_prob", 0.1),
        )


class Decoder(nn.Module):
    """Base of decoders: from h0 and a sequence to states that guess the sequence's tokens from the second one on."""

    takes_head = False
    """Whether states guess by way of the encoder's head, or by the token embeddings alone."""

    def forward(self, h0: Tensor, embedded: Tensor, present: Tensor) -> Tensor:
        """States ``(n, l - 1, d)``: number t guesses token t + 1.

        Args:
            h0: ``(n, d)``, the encoder's last states at CLS.
            embedded: ``(n, l, d)``, embeddings of the unmasked tokens, CLS first.
            present: ``(n, l)`` bool, what is no padding.
        """
        raise NotImplementedError


class WeakDecoder(Decoder):
    """SEED's autoregressive decoder: few layers that see few tokens back (*Less is More*, section 4).

    Pre-norm layers with positions of their own. h0 is a cross-attention memory of length 1, so the softmax over it is 1
    and its query and key get no gradient: it adds the same vector everywhere.
    """

    def __init__(self, shape: Shape, *, layers: int, window: int | None) -> None:
        super().__init__()
        self.window = window
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.norm = nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        layer = nn.TransformerDecoderLayer(
            shape.width, shape.heads, shape.feed_forward, shape.dropout, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerDecoder(layer, layers, norm=nn.LayerNorm(shape.width))

    def forward(self, h0: Tensor, embedded: Tensor, present: Tensor) -> Tensor:  # noqa: ARG002
        """See ``Decoder``; tokens are shifted right, so padding, which is at the end, is never looked at."""
        length = embedded.shape[1] - 1
        rows = self.dropout(self.norm(embedded[:, :-1] + self.positions.weight[:length]))
        hidden = hidden_positions(length, self.window, rows.device)
        return cast(Tensor, self.layers(rows, h0[:, None], tgt_mask=hidden))


class EnhancedDecoder(Decoder):
    """RetroMAE's one-layer decoder (arXiv 2205.12035, section 3.3): position t is guessed from h0 and from tokens that
    are drawn for t alone, each with a chance of 1 - ``masked``, never t itself. It guesses with the encoder's head."""

    takes_head = True

    def __init__(self, shape: Shape, *, masked: float) -> None:
        super().__init__()
        self.masked = masked
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.norm = nn.LayerNorm(shape.width)
        self.attention = nn.MultiheadAttention(shape.width, shape.heads, shape.dropout, batch_first=True)
        self.attention_norm = nn.LayerNorm(shape.width)
        self.feed_forward = nn.Sequential(
            nn.Linear(shape.width, shape.feed_forward), nn.GELU(), nn.Linear(shape.feed_forward, shape.width)
        )
        self.output_norm = nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, h0: Tensor, embedded: Tensor, present: Tensor) -> Tensor:
        """See ``Decoder``; queries are h0 with a position, keys and values are h0 and the sequence's tokens."""
        places = self.positions.weight[: embedded.shape[1]]
        queries = h0[:, None] + places[1:]
        seen = self.norm(torch.cat([h0[:, None], embedded[:, 1:]], dim=1) + places)
        hidden = self._hidden(present).repeat_interleave(self.attention.num_heads, dim=0)
        attended, _ = self.attention(queries, seen, seen, attn_mask=hidden, need_weights=False)
        states = self.attention_norm(queries + self.dropout(attended))
        return cast(Tensor, self.output_norm(states + self.dropout(self.feed_forward(states))))

    def _hidden(self, present: Tensor) -> Tensor:
        """``(n, l - 1, l)`` bool: what position t must not see; h0 is always seen."""
        count, length = present.shape
        hidden = torch.rand(count, length, length, device=present.device) < self.masked
        hidden |= torch.eye(length, dtype=torch.bool, device=present.device) | ~present[:, None]
        hidden[:, :, 0] = False
        return hidden[:, 1:]
