"""Dropout in one kernel, run by Triton's interpreter on the CPU: the same as one operation after the other."""

import importlib
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from trainers.common.passes.row_dropout import drop_plainly, fits, fused_drop

NAME = "trainers.common.passes.fused_dropout"


@pytest.fixture(scope="module")
def fused():
    pytest.importorskip("triton", reason="Triton comes with CUDA builds of torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.setitem(sys.modules, NAME, None)  # so that the interpreted module does not stay there
        del sys.modules[NAME]
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


def test_bfloat16_drops_at_the_same_places(fused) -> None:  # the interpreter rounds in another way
    input, keys = torch.rand(3, 5, 63).add(1).bfloat16(), torch.arange(3)
    fused_output, plain = (drop(input, keys, 7, 2**14) for drop in (fused, drop_plainly))
    assert torch.equal(fused_output == 0, plain == 0)
    torch.testing.assert_close(fused_output, plain)


@pytest.mark.parametrize(
    ("expected", "device", "shape", "dtype"),
    [
        (True, "cuda", (2, 3), torch.bfloat16),
        (True, "cuda", (2, 3, 4, 5), torch.float32),
        (False, "cpu", (2, 3), torch.float32),
        (False, "cuda", (2,), torch.float32),
        (False, "cuda", (2, 3, 4, 5, 6), torch.float32),
        (False, "cuda", (2, 0), torch.float32),
        (False, "cuda", (2, 3), torch.float64),
        (False, "cuda", (2, 3), torch.int32),
    ],
)
def test_the_kernel_gets_what_it_takes(expected, device, shape, dtype) -> None:
    with FakeTensorMode():
        assert fits(torch.empty(shape, dtype=dtype, device=device)) is expected


def test_too_little_memory_is_not_taken_for_a_missing_triton(monkeypatch) -> None:
    class Full:
        def drop(self, *_: object) -> None:
            raise torch.OutOfMemoryError

    monkeypatch.setitem(sys.modules, NAME, Full())
    with FakeTensorMode(), pytest.raises(torch.OutOfMemoryError):
        fused_drop.__wrapped__()


def test_without_triton_dropout_is_plain(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, NAME, None)
    assert fused_drop.__wrapped__() is None
    assert "warning: dropout takes longer, since Triton does not run: " in capsys.readouterr().err
