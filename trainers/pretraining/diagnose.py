"""Measures how informative an encoder's CLS state is, without labels."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from trainers.common.passes import drawing
from trainers.pretraining.model import Pretrained, Sequences

SHORTEST = 8


@torch.no_grad()
def validation_sums(model: Pretrained, chunks: Sequence[Sequences]) -> Tensor:
    """Sum three losses ``(3,)`` over all chunks: the encoder's, the decoder's, and the decoder's with swapped h0.

    With swapped h0, each sequence is decoded with the h0 of another one. The *h0 gap* is the difference between the
    means of the decoder's two losses: how much h0 tells the decoder. The other sequence is half of all sequences away,
    since neighbours are often parts of one text. The decoder draws the same random numbers both times.
    """
    sums, firsts = [], []
    for chunk in chunks:
        states = model.encode(chunk.read, chunk.present)
        firsts.append(states[:, 0])
        sums.append(model.encoder_sum(states, chunk))
    h0 = torch.cat(firsts)
    total = [torch.stack(sums).sum()]
    for read in (h0, h0.roll(len(h0) // 2, dims=0)):
        total.append(read.new_zeros(()))
        rows = torch.arange(len(read), device=read.device)
        for chunk, part in zip(chunks, torch.split(rows, [len(first) for first in firsts]), strict=True):
            with drawing([int(part[0])], h0.device):
                total[-1] += model.decoder_sum(read[part], chunk)
    return torch.stack(total)


@torch.no_grad()
def cosine_by_length(model: Pretrained, tokens: Tensor, sep: int, chunk: int) -> list[dict[str, float]]:
    """Mean cosine between the CLS states of any two sequences, cut to 8, 16, ... tokens.

    ``tokens`` ``(n, l)`` must be without padding. ``chunk`` sequences go through the model at once.
    """
    rows = []
    length = SHORTEST
    while length < 2 * tokens.shape[1]:
        cut = tokens[:, : min(length, tokens.shape[1])].clone()
        cut[:, -1] = sep
        firsts = [_first_states(model, part) for part in torch.split(cut, chunk)]
        states = functional.normalize(torch.cat(firsts), dim=-1)
        count = len(states)
        mean = (states.sum(dim=0).square().sum() - count) / max(count * (count - 1), 1)
        rows.append({"length": cut.shape[1], "cosine": float(mean)})
        length *= 2
    return rows


@torch.no_grad()
def cosine_by_position(model: Pretrained, tokens: Tensor, chunk: int) -> list[dict[str, float]]:
    """Mean cosine between h0 and the decoder's state at each position, over unpadded sequences ``(n, l)``."""
    cosines = []
    for rows in torch.split(torch.arange(len(tokens), device=tokens.device), chunk):
        part = tokens[rows]
        h0 = _first_states(model, part)
        with drawing([int(rows[0])], rows.device):
            states = model.decode(h0, part, torch.ones_like(part, dtype=torch.bool))
        cosines.append(functional.cosine_similarity(states, h0[:, None], dim=-1))
    return [{"position": place, "cosine": float(value)} for place, value in enumerate(torch.cat(cosines).mean(dim=0))]


def _first_states(model: Pretrained, tokens: Tensor) -> Tensor:
    """h0 ``(n, d)`` of unpadded sequences."""
    return model.encode(tokens, torch.ones_like(tokens, dtype=torch.bool))[:, 0]
