"""The h0 gap says how much a decoder needs h0 (*Less is More*, section 4), on texts where this must show."""

from itertools import combinations
from statistics import mean

import pytest
import torch
from torch import Generator, Tensor

from tests.pretraining.toys import LENGTH, VOCABULARY, WEAK, sequences, tiny_model
from trainers.pretraining.diagnose import cosine_by_length, cosine_by_position, validation_sums
from trainers.pretraining.model import Sequences
from trainers.pretraining.params import Weak

FIRST_WORD, WORDS_OF_A_TEXT = 5, 3


def texts(count: int, generator: Generator) -> Sequences:
    """Each text repeats three words, so that the previous words say as much about the next one as h0 does."""
    own = torch.rand(count, VOCABULARY - FIRST_WORD, generator=generator).argsort(dim=1)[:, :WORDS_OF_A_TEXT]
    tokens = FIRST_WORD + own.gather(1, torch.randint(WORDS_OF_A_TEXT, (count, LENGTH), generator=generator))
    tokens[:, 0] = 2
    chosen = torch.rand(tokens.shape, generator=generator) < 0.15
    chosen[:, 0] = False
    return Sequences(tokens, tokens.masked_fill(chosen, 4), chosen, torch.ones_like(chosen))


def gap_after_training(window: int | None) -> float:
    model, generator = tiny_model(Weak(kind="weak", layers=1, window=window)), Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(model.train().parameters(), lr=1e-2)
    for _ in range(200):
        batch = texts(32, generator)
        sums = model(batch)
        optimiser.zero_grad()
        (sums.encoder / batch.chosen.sum() + sums.decoder / batch.present[:, 1:].sum()).backward()
        optimiser.step()
    held_out = texts(128, generator)
    _, own, shuffled = (validation_sums(model.eval(), [held_out]) / held_out.present[:, 1:].sum()).tolist()
    return shuffled - own


def test_the_gap_is_positive_and_larger_if_the_decoder_sees_less() -> None:
    blind, whole = gap_after_training(1), gap_after_training(None)
    assert blind > whole + 0.1 > 0.3


def test_the_other_h0_is_not_the_neighbours_which_may_be_of_the_same_text() -> None:
    model, whole = tiny_model(WEAK), sequences(6, shortest=LENGTH)
    twins = Sequences(*(part.repeat_interleave(2, dim=0) for part in whole))
    _, own, shuffled = validation_sums(model, [twins])
    _, _, expected = validation_sums(model, [whole])
    assert float(shuffled) == pytest.approx(2 * float(expected))
    assert float(shuffled) != pytest.approx(float(own), rel=1e-6)


def test_cosines_are_those_of_the_states() -> None:
    model, tokens = tiny_model(WEAK), sequences(5, shortest=LENGTH).tokens
    present = torch.ones_like(tokens, dtype=torch.bool)
    h0 = model.encode(tokens, present)[:, 0].detach()
    states = model.decode(h0, tokens, present).detach()
    by_position = [row["cosine"] for row in cosine_by_position(model, tokens, 2)]
    expected = [mean(float(cosine(h0[n], states[n, t])) for n in range(5)) for t in range(LENGTH - 1)]
    assert by_position == pytest.approx(expected, abs=1e-6)
    short = torch.cat([tokens[:, :7], torch.full((5, 1), 3)], dim=1)
    firsts = model.encode(short, torch.ones_like(short, dtype=torch.bool))[:, 0].detach()
    first, *_ = cosine_by_length(model, tokens, 3, 2)
    pairs = mean(float(cosine(firsts[a], firsts[b])) for a, b in combinations(range(5), 2))
    assert first == {"length": 8, "cosine": pytest.approx(pairs, abs=1e-5)}


def cosine(first: Tensor, second: Tensor) -> Tensor:
    return first @ second / (first.norm() * second.norm())


def test_the_gap_of_an_untrained_model_is_small() -> None:
    _, own, shuffled = validation_sums(tiny_model(WEAK), [sequences(8)])
    assert abs(float(shuffled - own)) < 0.01 * float(own)


def test_losses_and_gap_do_not_depend_on_chunks() -> None:
    model, whole = tiny_model(WEAK), sequences(6)
    one_by_one = [Sequences(*rows) for rows in zip(*(torch.split(part, 1) for part in whole), strict=True)]
    expected = validation_sums(model, [whole])
    assert validation_sums(model, one_by_one).tolist() == pytest.approx(expected.tolist())
    sums = model(whole)
    assert expected[:2].tolist() == pytest.approx(torch.stack(sums).tolist())
