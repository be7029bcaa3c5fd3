"""What a weak decoder may look back on."""

import torch
from torch import Tensor


def hidden_positions(length: int, window: int | None, device: torch.device | None = None) -> Tensor:
    """``(length, length)`` bool, True where row i must not see column j.

    Row i sees itself, the ``window`` - 1 positions before it and position 0; without ``window``, all before it. Layers
    stack: the last row depends on layers x (window - 1) + 1 positions and position 0.
    (*Less is More*, section 4.2; built anew at every call, since a kept mask of one window would serve another.)
    """
    places = torch.arange(length, device=device)
    back = places[:, None] - places
    near = back < (length if window is None else window)
    return ~((back >= 0) & (near | (places == 0)))
