"""Dropout in one kernel, run by Triton's interpreter on the CPU: the same as one operation after the other."""

import importlib
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.common.passes.row_dropout import drop_plainly, fused_drop

NAME = "trainers.common.passes.fused_dropout"


@pytest.fixture(scope="module")
def fused():
    pytest.importorskip("triton", reason="Triton comes with CUDA builds of torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.delitem(sys.modules, NAME, raising=False)
        yield importlib.import_module(NAME).drop


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.sampled_from([1, 7, 8, 1030]),
    st.integers(0, 40),
    st.integers(1, 2**16 - 1),
)
def test_outputs_and_gradients_are_the_same(fused, outer, last, number, dropped) -> None:
    generator = torch.Generator().manual_seed(number)
    input, gradient = (torch.randn(*outer, last, generator=generator) for _ in range(2))
    keys = torch.randint(-(2**63), 2**63 - 1, outer[:1], generator=generator)
    input = input.mT.contiguous().mT if input.dim() > 2 else input
    found = []
    for drop in (fused, drop_plainly):
        leaf = input.clone().requires_grad_()
        output = drop(leaf, keys, number, dropped)
        found.append((output.detach(), *torch.autograd.grad(output, leaf, gradient)))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_without_a_gpu_or_triton_dropout_is_plain(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, NAME, None)
    assert fused_drop.__wrapped__() is None
    assert "warning: dropout takes longer, since Triton does not run: " in capsys.readouterr().err
