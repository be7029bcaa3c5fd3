"""The h0 gap says how much a decoder needs h0: oracle of *Less is More*, section 4, on texts where it must show."""

import pytest
import torch
from torch import Generator

from tests.seed.toys import LENGTH, VOCABULARY, WEAK, sequences, tiny_model
from trainers.seed.pretraining.diagnose import validation_sums
from trainers.seed.pretraining.model import Sequences
from trainers.seed.pretraining.params import Weak

FIRST_WORD, WORDS_OF_A_TEXT = 5, 3


def texts(count: int, generator: Generator) -> Sequences:
    """Every text repeats three words of its own, so that what was read before says as much of the next as h0 does."""
    own = torch.rand(count, VOCABULARY - FIRST_WORD, generator=generator).argsort(dim=1)[:, :WORDS_OF_A_TEXT]
    tokens = FIRST_WORD + own.gather(1, torch.randint(WORDS_OF_A_TEXT, (count, LENGTH), generator=generator))
    tokens[:, 0] = 2
    chosen = torch.rand(tokens.shape, generator=generator) < 0.15
    chosen[:, 0] = False
    return Sequences(tokens, tokens.masked_fill(chosen, 4), chosen, torch.ones_like(chosen))


def gap_after_training(window: int | None) -> float:
    model, generator = tiny_model(Weak(kind="seed", layers=1, window=window)), Generator().manual_seed(0)
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


def test_the_gap_is_positive_and_larger_where_the_decoder_sees_less() -> None:
    blind, whole = gap_after_training(1), gap_after_training(None)
    assert blind > whole + 0.1 > 0.3


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
