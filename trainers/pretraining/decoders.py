"""Decoders that must rely on h0, the encoder's last state at CLS: it is all that they see of the encoder."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from batchwright.formats.lengths import first_position


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes that a decoder takes over from its encoder; ``positions`` is how many tokens the encoder can read."""

    width: int
    heads: int
    feed_forward: int
    positions: int
    dropout: float

    @classmethod
    def of(cls, encoder: PreTrainedModel, length: int) -> "Shape":
        """Read the shape of an encoder such as BERT, RoBERTa or ModernBERT.

        If the encoder has no limit on positions, ``positions`` is ``length``.
        """
        config = encoder.config
        first = first_position(encoder)
        return cls(
            width=config.hidden_size,
            heads=config.num_attention_heads,
            feed_forward=getattr(config, "intermediate_size", 4 * config.hidden_size),
            positions=getattr(config, "max_position_embeddings", length + first) - first,
            dropout=getattr(config, "hidden_dropout_prob", 0.1),
        )


class Decoder(nn.Module):
    """Base class of decoders, which predict every token of a sequence but the first from h0 and the sequence."""

    takes_head = False
    """Whether states predict through the encoder's head, or through the token embeddings alone."""

    def forward(self, h0: Tensor, embedded: Tensor, present: Tensor) -> Tensor:
        """Compute states ``(n, l - 1, d)``; state t predicts token t + 1.

        Args:
            h0: ``(n, d)``, the encoder's last states at CLS.
            embedded: ``(n, l, d)``, embeddings of the unmasked tokens, CLS first.
            present: ``(n, l)`` bool, False for padding.
        """
        raise NotImplementedError


class WeakDecoder(Decoder):
    """SEED's autoregressive decoder: few layers, each of which sees few previous tokens (*Less is More*, section 4).

    It has pre-norm layers and its own position embeddings. h0 is a cross-attention memory of length 1. The softmax over
    it is 1, so it adds the same vector at every position, and the cross-attention's queries and keys get no gradient.
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
        """See ``Decoder``. ``present`` is not needed: attention is causal, and padding is at the end."""
        length = embedded.shape[1] - 1
        rows = self.dropout(self.norm(embedded[:, :-1] + self.positions.weight[:length]))
        hidden = hidden_positions(length, self.window, rows.device)
        return cast(Tensor, self.layers(rows, h0[:, None], tgt_mask=hidden))


class EnhancedDecoder(Decoder):
    """RetroMAE's one-layer decoder (arXiv 2205.12035, section 3.3), which predicts through the encoder's head.

    Position t is predicted from h0 and from a random selection of the other tokens, drawn for t alone: each is visible
    with probability 1 - ``masked``.
    """

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
        """See ``Decoder``. Queries are h0 plus a position; keys and values are h0 and the sequence's tokens."""
        places = self.positions.weight[: embedded.shape[1]]
        queries = h0[:, None] + places[1:]
        seen = self.norm(torch.cat([h0[:, None], embedded[:, 1:]], dim=1) + places)
        hidden = self._hidden(present).repeat_interleave(self.attention.num_heads, dim=0)
        attended, _ = self.attention(queries, seen, seen, attn_mask=hidden, need_weights=False)
        states = self.attention_norm(queries + self.dropout(attended))
        return cast(Tensor, self.output_norm(states + self.dropout(self.feed_forward(states))))

    def _hidden(self, present: Tensor) -> Tensor:
        """``(n, l - 1, l)`` bool: row t - 1 marks what position t must not see; h0 is always visible."""
        count, length = present.shape
        hidden = functional.dropout(torch.ones(count, length, length, device=present.device), self.masked) == 0
        hidden |= torch.eye(length, dtype=torch.bool, device=present.device) | ~present[:, None]
        hidden[:, :, 0] = False
        return hidden[:, 1:]


def hidden_positions(length: int, window: int | None, device: torch.device | None = None) -> Tensor:
    """Attention mask ``(length, length)`` bool, True where row i must not see column j (*Less is More*, section 4.2).

    Row i sees itself, the ``window`` - 1 positions before it and position 0; if ``window`` is None, it sees all
    positions before it. Windows of stacked layers add up: the last row depends on layers x (window - 1) + 1 positions
    and position 0. The mask is rebuilt at every call, since a cached one could be used for another window.
    """
    places = torch.arange(length, device=device)
    back = places[:, None] - places
    near = back < (length if window is None else window)
    return ~((back >= 0) & (near | (places == 0)))
