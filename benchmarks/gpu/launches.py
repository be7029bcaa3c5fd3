"""How many kernels a step launches on a GPU, counted on a CPU: ``python -m benchmarks.gpu.launches``.

A whole batch of texts as long as real ones goes through a BERT of true width as fake tensors, which have shapes but no
values, so that each operator is seen and nothing is computed. Views launch nothing. Left out are copies to the GPU, and
the optimiser, which is the same for all.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import torch
from sentence_transformers.base.losses import gradcache
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers.models.bert.modeling_bert import BertEncoder, BertModel

from batchwright.core.command import new_parser
from benchmarks.gpu.corpus import FULL, Form
from benchmarks.gpu.lengths import KEPT, Lengths
from benchmarks.gpu.steps import BY_TOKENS, FIXED, OURS, PADDED, THEIRS, Setting, build, job_of, settings
from benchmarks.gpu.training import read
from trainers.common import packing

FREE = {"empty", "empty_like", "new_empty", "empty_strided", "lift_fresh", "_unsafe_view", "device", "scalar_tensor"}
"""What launches nothing and is no view by its schema; numbers are arguments of kernels."""
GIGABYTES = 80
CONTENDERS = OURS, PADDED, FIXED, THEIRS, BY_TOKENS


class _Counting(FakeTensorMode):  # type: ignore[no-untyped-call]
    """Makes all tensors inside the block fake ones, and counts the operators."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.calls: Counter[str] = Counter()
        self._inside = False

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._inside:  # finding out shapes calls other operators
            return super().dispatch(func, types, args, kwargs)
        name = func.overloadpacket.__name__
        if not (func.is_view or name in FREE):
            self.calls[name] += 1
        self._inside = True
        try:
            return super().dispatch(func, types, args, kwargs)
        finally:
            self._inside = False


class _OnCpu(TorchFunctionMode):
    """Puts on the CPU what is to be put on a GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.pin_memory:
            return args[0]
        return func(*map(_cpu, args), **{key: _cpu(value) for key, value in (kwargs or {}).items()})


def _cpu(value: Any) -> Any:
    is_gpu = isinstance(value, (str, torch.device)) and str(value).startswith("cuda")
    return torch.device("cpu") if is_gpu else value


class _Autocast(torch.autocast):
    def __init__(self, device_type: str, *args: Any, **options: Any) -> None:
        super().__init__(str(_cpu(device_type)), *args, **options)


@contextmanager
def pretended_gpu() -> Iterator[None]:
    """Let code run as on a GPU, in a torch that was built without."""
    free = GIGABYTES * 10**9
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch, "autocast", _Autocast))
        stack.enter_context(mock.patch.object(torch.cuda, "mem_get_info", lambda *_: (free, free)))
        stack.enter_context(mock.patch.object(torch.cuda, "memory_reserved", lambda *_: 0))
        stack.enter_context(mock.patch.object(torch.cuda, "memory_allocated", lambda *_: 0))
        stack.enter_context(_OnCpu())
        yield


def launches(form: Form, setting: Setting, contender: str) -> Counter[str]:
    """Count the operators of a contender's step.

    A layer is as good as any other: they are counted with two and with one.
    """
    more = form.base.layers - 2
    two, one = counted(form, setting, contender, (2, 1))
    return Counter({name: two[name] + more * (two[name] - one[name]) for name in two})


def counted(form: Form, setting: Setting, contender: str, layers: Sequence[int]) -> list[Counter[str]]:
    """Count the operators of a step with so many ``layers``, fewer each time."""
    form = replace(form, warm=1, timed=0, base=replace(form.base, layers=layers[0]))
    theirs = contender in (THEIRS, BY_TOKENS)
    found = []
    with TemporaryDirectory() as folder, pretended_gpu(), mock.patch.object(packing, "_same_as_padded", _known):
        job = replace(job_of(form, Path(folder), Lengths.read(KEPT), setting), device="cuda")
        trainer = build(form, job, setting, contender)
        prepared = trainer.prepare(read(job, 0))
        for count in layers:
            for encoder in trainer.model.modules():
                if isinstance(encoder, BertEncoder):
                    del encoder.layer[count:]
            with (
                mock.patch.object(packing, "_attend_padded", _one_kernel),
                _mini_batches(form, job.common.mini_batch_size, contender, prepared),
                _Counting() as counting,
            ):
                _make_fake(trainer.model)
                for _ in range(1 if theirs else 2):  # our graphs are kept from the second batch on
                    counting.calls.clear()
                    trainer.backward(prepared)
            found.append(counting.calls)
    return found


def _known(backbone: nn.Module) -> bool:
    """What a trial on the CPU, in bfloat16 and at full width, would take long to find of a BERT."""
    return isinstance(backbone, BertModel)


def _one_kernel(query: Tensor, key: Tensor, value: Tensor, *_: Any, causal: bool) -> Tensor:
    """What stands for attention to packed texts, which a CPU lacks."""
    query, key, value = (each.transpose(0, 1)[None] for each in (query, key, value))
    return functional.scaled_dot_product_attention(query, key, value, is_causal=causal)[0].transpose(0, 1)


def _make_fake(model: nn.Module) -> None:
    """Replace weights by tensors without values; call it in a ``FakeTensorMode``."""
    for module in model.modules():
        for name, each in module._parameters.items():
            if each is not None:
                module._parameters[name] = nn.Parameter(torch.empty(each.shape, dtype=each.dtype))
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype)


@contextmanager
def _mini_batches(form: Form, size: Any, contender: str, features: Any) -> Iterator[None]:
    """Cut the mini batches of sentence-transformers beforehand, since that needs values; nothing is drawn."""
    if contender not in (THEIRS, BY_TOKENS):
        yield
        return
    by_tokens = form.chunk_tokens if contender == BY_TOKENS else None
    ranges, cut = {}, {}
    for side in features:
        key = id(side["input_ids"])
        ranges[key] = gradcache._minibatch_ranges(side, size, by_tokens)
        cut.update({(key, begin): gradcache._create_minibatch(side, begin, end) for begin, end in ranges[key]})
    with ExitStack() as stack:
        patched = {
            "_minibatch_ranges": lambda side, *_: ranges[id(side["input_ids"])],
            "_create_minibatch": lambda side, begin, _: dict(cut[id(side["input_ids"]), begin]),
            "RandContext": mock.MagicMock(),
        }
        for name, replacement in patched.items():
            stack.enter_context(mock.patch.object(gradcache, name, replacement))
        yield


def main() -> None:
    """Print what each contender launches in a step."""
    parser = new_parser("benchmarks.gpu.launches", str(__doc__), "python -m benchmarks.gpu.launches")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=CONTENDERS)
    parser.add_argument("--operators", type=int, default=8, help="how many of the most frequent ones to print")
    arguments = parser.parse_args()
    mixed = settings(FULL)[0]
    for contender in arguments.contenders:
        calls = launches(FULL, mixed, contender)
        most = ", ".join(f"{count} {name}" for name, count in calls.most_common(arguments.operators))
        print(f"{mixed.title}, {contender}: {calls.total():,} launches: {most}", flush=True)


if __name__ == "__main__":
    main()
