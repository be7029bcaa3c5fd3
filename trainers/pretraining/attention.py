"""Attention of the decoders."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.MultiheadAttention):
    """``nn.MultiheadAttention`` on ``(n, l, d)``, whose dropout ``RowDropout`` reaches: torch's own hides it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, heads, dropout, batch_first=True)

    def forward(  # type: ignore[override]
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, **_: Any
    ) -> tuple[Tensor, None]:
        """Attend where ``attn_mask``, which broadcasts to ``(n, heads, l, keys)``, is False."""
        parts = zip((query, key, value), self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3), strict=True)
        queries, keys, values = (
            functional.linear(*each).view(*each[0].shape[:2], self.num_heads, -1) for each in parts
        )
        visible = None if attn_mask is None else ~attn_mask
        dropout = self.dropout if self.training else 0.0
        attended = functional.scaled_dot_product_attention(
            queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), visible, dropout
        )
        return self.out_proj(attended.transpose(1, 2).flatten(2)), None
