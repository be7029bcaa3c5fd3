"""What an encoder's CLS state is worth, without any labels."""

import torch
from torch import Tensor
from torch.nn import functional

from trainers.seed.pretraining.model import Pretrained, Sequences, Sums

SHORTEST = 8


@torch.no_grad()
def shuffled_decoder_sum(model: Pretrained, batch: Sequences) -> tuple[Sums, Tensor]:
    """Both summed losses, and the decoder's when each sequence gets its neighbour's h0.

    The *h0 gap* is the difference of the decoder's means: how much the decoder learns from h0.
    """
    sums = model(batch)
    h0 = model.encode(batch.read, batch.present)[:, 0]
    return sums, model.decoder_sum(h0.roll(1, dims=0), batch)


@torch.no_grad()
def cosine_by_length(model: Pretrained, tokens: Tensor, sep: int) -> list[dict[str, float]]:
    """Mean cosine of the CLS states of any two of the unpadded sequences ``(n, l)``, cut to 8, 16, ... tokens."""
    rows = []
    length = SHORTEST
    while length < 2 * tokens.shape[1]:
        cut = tokens[:, : min(length, tokens.shape[1])].clone()
        cut[:, -1] = sep
        states = functional.normalize(model.encode(cut, torch.ones_like(cut, dtype=torch.bool))[:, 0], dim=-1)
        count = len(states)
        mean = (states.sum(dim=0).square().sum() - count) / max(count * (count - 1), 1)
        rows.append({"length": cut.shape[1], "cosine": float(mean)})
        length *= 2
    return rows


@torch.no_grad()
def cosine_by_position(model: Pretrained, tokens: Tensor) -> list[dict[str, float]]:
    """Mean cosine of h0 with the decoder's state at each position, over unpadded sequences ``(n, l)``."""
    present = torch.ones_like(tokens, dtype=torch.bool)
    h0 = model.encode(tokens, present)[:, 0]
    cosines = functional.cosine_similarity(model.decode(h0, tokens, present), h0[:, None], dim=-1).mean(dim=0)
    return [{"position": place, "cosine": float(value)} for place, value in enumerate(cosines)]
