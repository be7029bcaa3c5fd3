"""What an encoder's CLS state is worth, without any labels."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from trainers.seed.pretraining.model import Pretrained, Sequences

SHORTEST = 8


@torch.no_grad()
def validation_sums(model: Pretrained, chunks: Sequence[Sequences]) -> Tensor:
    """Summed losses ``(3,)`` of all chunks: the encoder's, the decoder's, and the decoder's when each sequence gets
    the h0 of the one before it.

    The *h0 gap* is the difference of the decoder's means: how much the decoder learns from h0.
    """
    sums, firsts = [], []
    for chunk in chunks:
        states = model.encode(chunk.read, chunk.present)
        firsts.append(states[:, 0])
        sums.append(model.encoder_sum(states, chunk))
    own = torch.cat(firsts)
    given = [torch.split(h0, [len(first) for first in firsts]) for h0 in (own, own.roll(1, dims=0))]
    decoded = [[model.decoder_sum(h0, chunk) for h0, chunk in zip(each, chunks, strict=True)] for each in given]
    return torch.stack([torch.stack(each).sum() for each in (sums, *decoded)])


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
