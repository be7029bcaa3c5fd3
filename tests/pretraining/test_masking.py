"""Which tokens the encoder has to predict."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainers.pretraining.reader import mask_tokens

MASK = 4
ORDINARY = np.arange(5, 1000, dtype=np.int32)


def draw(tokens, maskable, share, seed):
    return mask_tokens(tokens, maskable, share, MASK, ORDINARY, np.random.default_rng(seed))


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 70), st.floats(0.05, 0.6))
def test_a_sequence_has_the_share_of_its_maskable_tokens_masked_or_one_more(seed, count, length, share) -> None:
    generator = np.random.default_rng(seed)
    tokens = generator.integers(0, 1000, (count, length)).astype(np.int32)
    maskable = generator.random((count, length)) < 0.8
    read, chosen = draw(tokens, maskable, share, seed)
    n = maskable.sum(axis=1)
    assert set((chosen.sum(axis=1) - np.floor(share * n)).tolist()) <= {0, 1}
    assert not (chosen & ~maskable).any()
    assert (read == tokens)[~chosen].all()


def test_80_percent_of_the_chosen_are_masked_and_10_percent_replaced() -> None:
    tokens = np.full((2000, 64), 7, np.int32)
    maskable = np.ones(tokens.shape, bool)
    maskable[:, 0] = False
    read, chosen = draw(tokens, maskable, 0.15, 0)
    picked = read[chosen]
    count = len(picked)
    assert abs(count / (2000 * 63) - 0.15) < 0.002
    for share, expected in ((np.mean(picked == MASK), 0.8), (np.mean(picked == 7), 0.1 + 0.1 / len(ORDINARY))):
        assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / count)
    others = picked[(picked != MASK) & (picked != 7)]
    assert others.min() >= 5 and len(np.unique(others)) > 800
    assert np.ptp(chosen[:, 1:].mean(axis=0)) < 0.06
    assert not chosen[:, 0].any()


def test_a_seed_always_draws_the_same_masks_and_another_draws_others() -> None:
    tokens = np.full((4, 40), 7, np.int32)
    first, again, other = (draw(tokens, tokens > 0, 0.15, seed)[1] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
