"""The model to pre-train: an encoder, its masked-language head and a decoder that reads h0."""

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from trainers.pretraining.decoders import Decoder, EnhancedDecoder, Shape, WeakDecoder
from trainers.pretraining.params import Enhanced, Weak

INITIAL_DEVIATION = 0.02


class Head(nn.Module):
    """BERT's masked-language head: dense, gelu, norm, then the token embeddings and a bias."""

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Tensor, embeddings: Tensor) -> Tensor:
        """Logits ``(n, V)`` of states ``(n, d)``."""
        return functional.linear(self.norm(functional.gelu(self.dense(states))), embeddings, self.bias)

    def expect(self, counts: Tensor) -> None:
        """Let tokens start as probable as their ``counts`` ``(n,)`` say; those from n on have none."""
        expected = torch.ones_like(self.bias)  # one more of each, so that none is impossible
        expected[: len(counts)] += counts
        self.bias.data.copy_((expected / expected.sum()).log())


class Sequences(NamedTuple):
    """A batch of sequences; all fields are ``(n, l)``.

    ``tokens`` are the original ids and ``read`` those that the encoder reads. ``chosen`` bool marks the tokens that it
    has to predict, ``present`` bool is False for padding.
    """

    tokens: Tensor
    read: Tensor
    chosen: Tensor
    present: Tensor


class Sums(NamedTuple):
    """Cross-entropies in nats, summed: the encoder's over the chosen tokens, the decoder's over all but the first."""

    encoder: Tensor
    decoder: Tensor


class Pretrained(nn.Module):
    """Encoder, head and decoder, which share the encoder's token embeddings. New parts start calm (``_calm_gain``)."""

    def __init__(self, encoder: PreTrainedModel, shape: Shape, decoder: Weak | Enhanced | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = Head(shape.width, len(self.embeddings))
        self.decoder = build_decoder(shape, decoder)
        for part in (self.head, self.decoder):
            if part is not None:
                part.apply(_initialise)
        gain = _calm_gain(self.embeddings)
        nn.init.constant_(self.head.norm.weight, gain)
        if isinstance(self.decoder, WeakDecoder):  # the other one predicts through the head
            nn.init.constant_(cast(nn.LayerNorm, self.decoder.layers.norm).weight, gain)

    @property
    def embeddings(self) -> Tensor:
        """The token embeddings ``(V, d)``."""
        return cast(Tensor, self.encoder.get_input_embeddings().weight)

    def encode(self, read: Tensor, present: Tensor) -> Tensor:
        """Compute the encoder's last states ``(n, l, d)``."""
        states: Tensor = self.encoder(input_ids=read, attention_mask=present.long()).last_hidden_state
        return states

    def decode(self, h0: Tensor, tokens: Tensor, present: Tensor) -> Tensor:
        """Compute the decoder's states ``(n, l - 1, d)``."""
        assert self.decoder is not None
        return cast(Tensor, self.decoder(h0, functional.embedding(tokens, self.embeddings), present))

    def forward(self, batch: Sequences) -> Sums:
        """Compute both losses with one pass of the encoder (*Less is More*, section 4.1)."""
        states = self.encode(batch.read, batch.present)
        return Sums(self.encoder_sum(states, batch), self.decoder_sum(states[:, 0], batch))

    def encoder_sum(self, states: Tensor, batch: Sequences) -> Tensor:
        """The encoder's summed cross-entropy, given its last states ``(n, l, d)``."""
        logits = self.head(states[batch.chosen], self.embeddings)
        return _cross_entropy(logits, batch.tokens[batch.chosen])

    def decoder_sum(self, h0: Tensor, batch: Sequences) -> Tensor:
        """The decoder's summed cross-entropy, given any h0 ``(n, d)``; 0 without a decoder."""
        if self.decoder is None:
            return h0.new_zeros(())
        wanted = batch.present[:, 1:]
        states = self.decode(h0, batch.tokens, batch.present)[wanted]
        by_head = self.decoder.takes_head
        logits = self.head(states, self.embeddings) if by_head else functional.linear(states, self.embeddings)
        return _cross_entropy(logits, batch.tokens[:, 1:][wanted])


def _cross_entropy(logits: Tensor, tokens: Tensor) -> Tensor:
    """Summed, in float32 at least."""
    accurate = torch.promote_types(logits.dtype, torch.float32)
    return functional.cross_entropy(logits.to(accurate), tokens, reduction="sum")


def build_decoder(shape: Shape, params: Weak | Enhanced | None) -> Decoder | None:
    """Build the decoder that ``params`` describe."""
    if isinstance(params, Weak):
        return WeakDecoder(shape, layers=params.layers, window=params.window)
    return EnhancedDecoder(shape, masked=params.mask_ratio) if params else None


def _calm_gain(embeddings: Tensor) -> float:
    """The gain of the norm before tied embeddings ``(V, d)`` at which a new part begins no worse than by guessing.

    States of the norm are sqrt(d) long, so their logits grow with the embeddings' norm. A trained model's embeddings
    are long, and a pre-norm decoder begins by repeating the token that it has just read, which is never the right one.
    With this gain no logit of an average token exceeds ln(V) / 2, so that token gets a probability near 1 / sqrt(V).
    """
    count, width = embeddings.shape
    longest = math.sqrt(width) * float(embeddings.detach().norm(dim=1).mean())
    return min(1.0, math.log(count) / 2 / longest)


def _initialise(module: nn.Module) -> None:
    """Draw weights as BERT does."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=INITIAL_DEVIATION)
    if isinstance(module, nn.MultiheadAttention):
        nn.init.normal_(module.in_proj_weight, std=INITIAL_DEVIATION)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
