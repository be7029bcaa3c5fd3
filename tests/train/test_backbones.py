"""Flash attention, with kernels that are pretended ones, and compiled transformers: the gradient, and refusals."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from functorch.compile import make_boxed_func
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch.nn import functional
from transformers import PreTrainedModel
from transformers import modeling_flash_attention_utils as flash

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from tests.tiny_models import save_t5
from tests.train.test_distributed import ragged_rows
from tests.train.toys import describe, toy_batch, toy_job, write_toy_model, write_toy_shards
from trainers.common.job import TrainJob
from trainers.common.passes import seed_start
from trainers.variants import load_variant, prepare_backbones, train

OPTIONS: dict[str, dict[str, object]] = {
    "biencoder": {},
    "cde": {"context_documents": 4, "context_dropout": 0},
    "xtr": {"score": "colbert"},
}


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


def job_in(folder: Path, start: Path, variant: str = "biencoder", **options: object) -> TrainJob:
    if not (folder / "shards").exists():
        write_toy_shards(folder / "shards", [toy_batch(ragged_rows(seed)) for seed in range(2)])
    options = {"attention": "flash", "precision": "bfloat16", "mini_batch_size": 3, **options}
    return toy_job(folder, start, folder / "shards", variant, **options)


def on_gpu(job: TrainJob) -> TrainJob:
    return replace(job, device="cuda")


def test_flash_attention_that_cannot_be_is_refused(tmp_path: Path) -> None:
    start = write_toy_model(tmp_path / "start", dropout=0)
    job = job_in(tmp_path, start)
    model = SentenceTransformer(str(start), device="cpu")
    with pytest.raises(InputError, match="needs a GPU"):
        train(job)
    with pytest.raises(InputError, match="precision bfloat16"):
        prepare_backbones(on_gpu(job_in(tmp_path, start, precision="float32")), model)
    with pytest.raises(InputError, match=r"package.*installed.*set attention to auto"):
        prepare_backbones(on_gpu(job), model)
    with pytest.raises(InputError, match="no transformer"):
        prepare_backbones(on_gpu(job), torch.nn.Linear(2, 2))
    dropping = write_toy_model(tmp_path / "dropping")
    with pytest.raises(InputError, match="set dropout to 0"):
        prepare_backbones(
            on_gpu(job_in(tmp_path, dropping, dropout=None)), SentenceTransformer(str(dropping), device="cpu")
        )
    t5 = describe(save_t5(tmp_path / "t5"))
    with pytest.raises(InputError, match="does not support Flash Attention 2"):
        prepare_backbones(on_gpu(job_in(tmp_path, t5)), SentenceTransformer(str(t5), device="cpu"))


@pytest.mark.parametrize("variant", OPTIONS)
def test_flash_attention_gives_the_same_gradient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str) -> None:
    job = job_in(tmp_path, write_toy_model(tmp_path / "start", dropout=0), variant, **OPTIONS[variant])
    expected, texts = _gradient(job), list[int]()

    def attend(query: Tensor, key: Tensor, value: Tensor, cu_seqlens_q: Tensor, **options: object) -> Tensor:
        """``flash_attn_varlen_func`` for ``(tokens, heads, d)``, as slowly as can be."""
        assert query.dtype == torch.bfloat16 and not options.get("dropout_p") and not options["causal"]
        texts.append(len(cu_seqlens_q) - 1)
        lengths = cu_seqlens_q.diff().tolist()
        parts = zip(*(each.transpose(0, 1).split(lengths, dim=1) for each in (query, key, value)), strict=True)
        return torch.cat([functional.scaled_dot_product_attention(*part) for part in parts], dim=1).transpose(0, 1)

    def attend_unpadded(query: Tensor, key: Tensor, value: Tensor, **options: object) -> Tensor:
        size, length = query.shape[:2]
        flat = (each.flatten(0, 1) for each in (query, key, value))
        return attend(*flat, torch.arange(0, size * length + 1, length), **options).view(query.shape)

    monkeypatch.setattr(PreTrainedModel, "_flash_attn_can_dispatch", lambda *_, **__: True)
    known = {"causal", "dropout_p", "softmax_scale", "max_seqlen_q", "max_seqlen_k"}
    for name, value in {
        "_loaded_implementation": "flash_attention_2",
        "_flash_fn": attend_unpadded,
        "_flash_varlen_fn": attend,
        "_pad_fn": flash._pad_input,
        "_unpad_fn": flash._unpad_input,
        "_process_flash_kwargs_fn": lambda is_causal, dropout, **rest: (
            {"causal": is_causal, "dropout_p": dropout} | {key: rest[key] for key in known & rest.keys()}
        ),
    }.items():
        monkeypatch.setattr(flash, name, value)
    found = _gradient(job, prepared=True)
    assert texts
    assert max(texts) <= 3
    assert_close(found, expected, 1e-2)


def test_what_cannot_be_compiled_is_refused(tmp_path: Path) -> None:
    plain = {"attention": "auto", "compile": True}
    start = write_toy_model(tmp_path / "start")
    for rate in (None, 0.1):
        with pytest.raises(InputError, match="set dropout to 0"):
            train(job_in(tmp_path, start, **plain, dropout=rate))
    with pytest.raises(InputError, match="context cannot be compiled"):
        train(job_in(tmp_path, start, "cde", **plain, context_documents=4))
    with pytest.raises(InputError, match="no transformer; set compile to false"):
        prepare_backbones(job_in(tmp_path, start, **plain), torch.nn.Linear(2, 2))


@pytest.mark.parametrize("variant", ["biencoder", "xtr"])
def test_a_compiled_transformer_gives_the_same_gradient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    """Traced as with any backend; torch's own would need a C++ compiler, and minutes."""
    compiled = []
    backend = aot_autograd(fw_compiler=lambda graph, _: compiled.append(graph) or make_boxed_func(graph))
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    options = {"attention": "auto", "precision": "float32", **OPTIONS[variant]}
    job = job_in(tmp_path, write_toy_model(tmp_path / "start", dropout=0, layers=1), variant, **options)
    expected = _gradient(job)
    found = _gradient(replace(job, common=job.common.model_copy(update={"compile": True})), prepared=True)
    assert compiled
    assert_close(found, expected, 1e-4)


def assert_close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    assert (found - expected).norm() < tolerance * expected.norm()


def _gradient(job: TrainJob, *, prepared: bool = False) -> Tensor:
    """Of all parameters; of unused ones it is 0, or None."""
    seed_start(job.seed)
    learner = load_variant(job.variant).build_learner(job)
    if prepared:
        prepare_backbones(on_gpu(job), learner.model)
    learner.model.train()
    learner.backward(learner.prepare(BatchReader(ShardSet.open(job.shards), job.info.prefixes, 0).read(0, slice(None))))
    own = [torch.zeros_like(each) if each.grad is None else each.grad for each in learner.model.parameters()]
    return torch.cat([each.flatten() for each in own])
