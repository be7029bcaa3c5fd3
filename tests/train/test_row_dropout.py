"""Dropout that belongs to rows: its draws are fair, independent, and the same whatever else is computed."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from tests.cde.encoders import KINDS, backbone
from trainers.common.passes.random_bits import random_bits
from trainers.common.passes.row_dropout import RowDropout

SHAPE = (64, 40, 48)


def kept(seed: int = 0, rate: float = 0.5, rows: Tensor | None = None, shape: tuple[int, ...] = SHAPE) -> Tensor:
    """Which places dropout keeps, as 0 and 1."""
    with RowDropout([seed], torch.arange(shape[0]) if rows is None else rows):
        return (functional.dropout(torch.ones(shape), rate) > 0).double()


def test_the_bits_are_those_of_splitmix64() -> None:
    """The first outputs of the reference implementation (Vigna, splitmix64.c) from the state 1234567."""
    words = random_bits(torch.tensor([1234567]), [12]).contiguous().view(torch.int64)[0]
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(word) % 2**64 for word in words] == expected


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_the_share_and_the_mean_are_right(rate: float) -> None:
    count = float(torch.tensor(SHAPE).prod())
    assert abs(1 - kept(rate=rate).mean() - rate) < 4 * (rate * (1 - rate) / count) ** 0.5
    with RowDropout([0], torch.arange(SHAPE[0])):
        whole = functional.dropout(torch.ones(SHAPE), rate)
    assert set(whole.unique().tolist()) == {0.0, float(np.float32(1 / (1 - round(rate * 2**16) / 2**16)))}


def test_draws_of_rows_places_dropouts_and_steps_are_independent() -> None:
    """Correlations of n fair coins have a standard deviation of 1 / sqrt(n)."""
    coins = 2 * kept() - 1
    with RowDropout([0], torch.arange(SHAPE[0])):
        functional.dropout(torch.ones(SHAPE), 0.5)
        second = 2.0 * (functional.dropout(torch.ones(SHAPE), 0.5) > 0) - 1
    pairs = {
        "rows": (coins[1:], coins[:-1]),
        "tokens": (coins[:, 1:], coins[:, :-1]),
        "features": (coins[..., 1:], coins[..., :-1]),
        "words": (coins[..., 4:], coins[..., :-4]),
        "dropouts": (coins, second),
        "steps": (coins, 2 * kept(seed=1) - 1),
    }
    for name, (one, other) in pairs.items():
        assert abs(float((one * other).mean())) < 4 / one.numel() ** 0.5, name
    for axis in itertools.combinations(range(3), 2):  # no row, token or feature is favoured
        sums = coins.sum(dim=axis) / (coins.numel() / coins.shape[({0, 1, 2} - set(axis)).pop()]) ** 0.5
        assert sums.abs().max() < 4.5


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(6)), st.integers(1, 6), st.integers(0, 5))
def test_a_row_drops_the_same_in_any_company_and_with_any_padding(order: list[int], count: int, padding: int) -> None:
    whole, rows = kept(shape=(6, 7, 9)), torch.tensor(order[:count])
    part = kept(rows=rows, shape=(count, 7 + padding, 9))
    assert torch.equal(part[:, :7], whole[rows])
    attention = kept(shape=(6, 2, 7, 7))
    part = kept(rows=rows, shape=(count, 2, 7 + padding, 7 + padding))
    assert torch.equal(part[:, :, :7, :7], attention[rows])


def test_what_all_rows_share_drops_alike_for_all() -> None:
    parts = [kept(rows=torch.arange(count), shape=(50, 8)) for count in (3, 4)]  # type: ignore[arg-type]
    assert torch.equal(*parts)


@pytest.mark.parametrize("mask", [None, "bool", "float", "causal"])
def test_attention_is_torchs_but_for_what_is_dropped(mask: str | None) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(3, 2, 5, 4, requires_grad=True) for _ in range(3))
    visible = torch.rand(3, 1, 5, 5) < 0.7
    visible |= torch.eye(5, dtype=torch.bool)
    given_mask = {"bool": visible, "float": torch.randn(3, 1, 5, 5)}.get(mask or "")
    options = {"attn_mask": given_mask, "is_causal": mask == "causal"}
    expected = functional.scaled_dot_product_attention(query, key, value, **options)  # type: ignore[arg-type]
    draws = []
    for step in range(2000):
        with RowDropout([step], torch.arange(3)), torch.no_grad():
            draws.append(functional.scaled_dot_product_attention(query, key, value, dropout_p=0.1, **options))  # type: ignore[arg-type]
    found = torch.stack(draws)
    error = found.std(dim=0) / len(draws) ** 0.5
    assert ((found.mean(dim=0) - expected).abs() < 5 * error + 1e-6).all()
    assert error.max() > 1e-3
    with RowDropout([0], torch.arange(3)):
        same = functional.scaled_dot_product_attention(query, key, value, **options)  # type: ignore[arg-type]
        none = functional.scaled_dot_product_attention(query, key, value, dropout_p=1e-9, **options)  # type: ignore[arg-type]
    assert torch.equal(same, expected)
    torch.testing.assert_close(none, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_no_encoder_draws_from_torchs_generator_and_groups_change_nothing(kind: str) -> None:
    model = backbone(kind).train()
    for module in model.modules():
        for name in ("p", "dropout", "attention_dropout", "dropout_prob", "dropout_rate"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.2)
    ids = torch.randint(5, 20, (4, 9))
    ids[2:, 6:] = 0
    present = (ids > 0).long()
    before = torch.get_rng_state()

    def states(rows: Tensor, length: int) -> Tensor:
        with RowDropout([1], rows), torch.no_grad():
            found = model(input_ids=ids[rows, :length], attention_mask=present[rows, :length]).last_hidden_state
        return found * present[rows, :length, None]

    whole = states(torch.arange(4), 9)
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(states(torch.tensor([3, 2]), 6), whole[[3, 2], :6])
    torch.testing.assert_close(states(torch.tensor([1]), 9), whole[[1]])
    with torch.no_grad():
        plain = model.eval()(input_ids=ids, attention_mask=present).last_hidden_state * present[..., None]
    assert (plain - whole).abs().mean() > 0.01, "dropout matters"
