"""What the decoders see: as in the released SEED model class, and by RetroMAE's rule."""

import math
from itertools import product
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from tests.pretraining.toys import LENGTH, SHAPE, VOCABULARY, WEAK, WIDTH, sequences, tiny_model
from trainers.pretraining.decoders import EnhancedDecoder, Shape, WeakDecoder, hidden_positions
from trainers.pretraining.model import Pretrained
from trainers.pretraining.params import Enhanced

ENHANCED = Enhanced(kind="retromae", mask_ratio=0.5)


@given(st.integers(1, 20), st.one_of(st.none(), st.integers(1, 25)))
def test_a_row_sees_its_window_and_position_0(length: int, window: int | None) -> None:
    hidden = hidden_positions(length, window)
    for row, column in product(range(length), repeat=2):
        seen = column <= row and (window is None or row - column < window or column == 0)
        assert hidden[row, column] == (not seen)


def test_full_attention_after_a_windowed_call_is_full() -> None:
    assert hidden_positions(6, 2).sum() > hidden_positions(6, None).sum()
    assert torch.equal(hidden_positions(6, None), torch.ones(6, 6).triu(1).bool())


def weak(layers: int, window: int | None) -> WeakDecoder:
    torch.manual_seed(0)
    return WeakDecoder(SHAPE, layers=layers, window=window).eval()


def dependence(decoder: nn.Module, row: int) -> Tensor:
    """How much each token affects the state of ``row``."""
    embedded = torch.randn(1, LENGTH + 1, WIDTH, requires_grad=True)
    states = decoder(torch.randn(1, WIDTH), embedded, torch.ones(1, LENGTH + 1, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(states[0, row].square().sum(), embedded)
    return gradient[0].abs().sum(dim=-1)


@pytest.mark.parametrize(
    ("layers", "window", "first"), [(1, 2, 12), (3, 2, 10), (1, 8, 6), (5, 2, 8), (2, 3, 9), (1, None, 1), (2, 14, 1)]
)
def test_the_last_of_14_states_depends_on_the_stacked_windows_and_position_0(
    layers: int, window: int | None, first: int
) -> None:
    found = dependence(weak(layers, window), LENGTH - 1)
    assert found.nonzero().flatten().tolist() == [0, *range(first, LENGTH)]


def test_no_state_depends_on_the_token_it_predicts_or_on_later_ones() -> None:
    for row in range(LENGTH):
        assert dependence(weak(3, 2), row)[row + 1 :].abs().sum() == 0


def test_unshifted_targets_would_be_seen() -> None:
    """State t sees token t; if that were its target, there would be nothing to predict."""
    assert dependence(weak(3, 2), 5)[5] > 0


def test_memory_of_length_one_adds_the_same_vector_everywhere() -> None:
    layer = weak(1, 2).layers.layers[0].multihead_attn
    h0 = torch.randn(3, 1, WIDTH)
    rows = torch.randn(3, 7, WIDTH, requires_grad=True)
    values = nn.functional.linear(h0, layer.in_proj_weight[2 * WIDTH :], layer.in_proj_bias[2 * WIDTH :])
    added = layer.out_proj(values)
    assert torch.allclose(layer(rows, h0, h0)[0], added.expand(-1, 7, -1), atol=1e-6)
    layer(rows, h0, h0)[0].square().sum().backward()
    assert layer.in_proj_weight.grad is not None
    assert layer.in_proj_weight.grad[: 2 * WIDTH].abs().max() < 1e-5
    assert layer.in_proj_weight.grad[2 * WIDTH :].abs().max() > 0


@pytest.mark.parametrize("decoder", [WEAK, ENHANCED], ids=["weak", "retromae"])
def test_the_decoder_sees_only_the_encoders_cls_state(decoder) -> None:
    gradient = state_gradient(tiny_model(decoder))
    assert gradient[:, 0].abs().min() > 0
    assert gradient[:, 1:].abs().max() == 0


def test_a_decoder_that_sees_all_encoder_states_would_be_noticed() -> None:
    model = tiny_model(WEAK)

    class Leaking(WeakDecoder):
        def forward(self, h0: Tensor, embedded: Tensor, present: Tensor) -> Tensor:
            return self.layers(embedded[:, :-1], self.memory, tgt_mask=hidden_positions(LENGTH - 1, 2))

    model.decoder = Leaking(SHAPE, layers=3, window=2)
    assert state_gradient(model)[:, 1:].abs().max() > 0


def state_gradient(model: Pretrained) -> Tensor:
    """Gradient of the decoder's loss at the encoder's last states, from the same forward pass as in training."""
    batch = sequences(4, shortest=LENGTH)
    states = model.encode(batch.read, batch.present).detach().requires_grad_()
    model.decoder.memory = states  # type: ignore[union-attr]
    with patch.object(model, "encode", lambda *_: states):
        (gradient,) = torch.autograd.grad(model(batch).decoder, states)
    return gradient


@pytest.mark.parametrize("decoder", [WEAK, Enhanced(kind="retromae", mask_ratio=0.0)], ids=["weak", "retromae"])
def test_a_new_decoder_responds_to_the_tokens_as_well_as_to_h0(decoder) -> None:
    """Embeddings have a standard deviation of 0.02 and h0 one of 1: without a norm, tokens would hardly matter."""
    model, present = tiny_model(decoder), torch.ones(4, LENGTH, dtype=torch.bool)
    h0 = functional.layer_norm(torch.randn(4, WIDTH), [WIDTH])
    first, second = (model.decode(h0, sequences(4, seed, LENGTH).tokens, present) for seed in (0, 1))
    assert (first - second).square().mean().sqrt() > 5e-4


def test_padding_changes_no_loss() -> None:
    for decoder in (WEAK, Enhanced(kind="retromae", mask_ratio=0.0)):
        model = tiny_model(decoder)
        batch = sequences(5)
        h0 = torch.randn(5, WIDTH)
        one_by_one = sum(
            model.decoder_sum(h0[i : i + 1], type(batch)(*(x[i : i + 1, : int(batch.present[i].sum())] for x in batch)))
            for i in range(5)
        )
        assert model.decoder_sum(h0, batch).item() == pytest.approx(one_by_one.item(), rel=1e-5)


def test_sizes_are_those_of_the_released_model() -> None:
    base = Shape(width=768, heads=12, feed_forward=3072, positions=514, dropout=0.1)
    with torch.device("meta"):
        decoder = WeakDecoder(base, layers=3, window=2)
    assert sum(parameter.numel() for parameter in decoder.parameters()) == 28_753_152


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 0.9))
def test_the_enhanced_decoder_never_shows_a_token_to_its_own_position(seed: int, masked: float) -> None:
    torch.manual_seed(seed)
    decoder = EnhancedDecoder(SHAPE, masked=masked).eval()
    present = torch.arange(LENGTH) < 9
    hidden = decoder._hidden(present[None])[0]
    assert hidden.shape == (LENGTH - 1, LENGTH)
    assert not hidden[:, 0].any()
    assert hidden[:, 9:].all()
    assert hidden.diagonal(1).all()


def test_the_enhanced_decoder_sees_the_requested_share() -> None:
    torch.manual_seed(0)
    hidden = EnhancedDecoder(SHAPE, masked=0.7)._hidden(torch.ones(400, LENGTH, dtype=torch.bool))
    others = torch.ones(LENGTH - 1, LENGTH, dtype=torch.bool)
    others[:, 0] = False
    others.diagonal(1).fill_(False)
    assert hidden[:, others].float().mean() == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("decoder", [WEAK, ENHANCED], ids=["weak", "retromae"])
def test_both_losses_start_near_the_log_of_the_vocabulary_size(decoder) -> None:
    model = tiny_model(decoder)
    batch = sequences(64)
    with torch.no_grad():
        sums = model(batch)
    expected = pytest.approx(math.log(VOCABULARY), abs=0.1)
    assert float(sums.encoder / batch.chosen.sum()) == expected
    assert float(sums.decoder / batch.present[:, 1:].sum()) == expected
