"""The attention mask of the weak decoder."""

import torch
from torch import Tensor


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
