"""Packed texts and compiled layers: the gradient is that of padded texts, and what cannot be is left or refused."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from functorch.compile import make_boxed_func
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from transformers import ModernBertConfig, ModernBertModel, MPNetConfig, MPNetModel, PreTrainedModel

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from tests.tiny_models import save_t5
from tests.train.test_distributed import ragged_rows
from tests.train.toys import toy_batch, toy_job, write_toy_model, write_toy_shards
from trainers.common import gradient_cache
from trainers.common.backbones import prepare_backbones
from trainers.common.gradient_cache import gains_by_packing
from trainers.common.job import TrainJob
from trainers.common.packing import Packing, pack_texts
from trainers.variants import build_learner, train

OPTIONS: dict[str, dict[str, object]] = {
    "biencoder": {},
    "seed_encoder": {},
    "cde": {"context_documents": 4, "context_dropout": 0},
    "xtr": {"score": "colbert"},
}


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


def job_in(folder: Path, start: Path, variant: str = "biencoder", **options: object) -> TrainJob:
    if not (folder / "shards").exists():
        write_toy_shards(folder / "shards", [toy_batch(ragged_rows(seed)) for seed in range(2)])
    return toy_job(folder, start, folder / "shards", variant, **{"mini_batch_size": 3, **options})


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.booleans())
def test_packing_puts_texts_one_after_the_other(lengths: list[int], left: bool) -> None:
    longest = max(lengths)
    present = np.arange(longest) < np.array(lengths)[:, None]
    present = present[:, ::-1] if left else present
    packing = Packing.of(present.astype(np.int64), longest)
    assert packing.present == sum(lengths)
    starts = packing.starts.tolist()
    for text, length in enumerate(lengths):
        own = slice(starts[text], starts[text + 1])
        first = text * longest + (longest - length if left else 0)
        assert packing.places[own].tolist() == list(range(first, first + length))
        assert packing.positions[own].tolist() == list(range(length))
    assert len(packing.places) == len(packing.positions) == starts[-1]
    assert (len(packing.places) % 2048, (len(starts) - 1) % 256) == (0, 0), "few shapes"
    assert packing.starts.diff().max() <= longest, "what fills up is as long as texts may be"


@pytest.mark.parametrize("variant", OPTIONS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_packed_texts_give_the_gradient_of_padded_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str, precision: str
) -> None:
    start = write_toy_model(tmp_path / "start", dropout=0)
    job = job_in(tmp_path, start, variant, precision=precision, **OPTIONS[variant])
    monkeypatch.setattr("trainers.common.backbones.attend_in_float32", lambda _: None)  # so that only texts differ
    expected = gradient(job)
    monkeypatch.setattr(gradient_cache, "gains_by_packing", lambda _: True)
    assert_close(gradient(job), expected, 1e-2 if precision == "float32" and variant == "seed_encoder" else 3e-2)
    if (precision, variant) in {("float32", each) for each in ("biencoder", "cde", "xtr")}:
        assert_close(gradient(job), expected, 1e-5)


@pytest.mark.parametrize("variant", ["biencoder", "seed_encoder", "xtr"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_on_a_processor_attention_stays_float32_where_all_else_is_bfloat16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str, checkpointing: bool
) -> None:
    start = write_toy_model(tmp_path / "start", dropout=0)
    job = job_in(tmp_path, start, variant, precision="bfloat16", checkpointing=checkpointing, **OPTIONS[variant])
    monkeypatch.setattr("trainers.common.backbones.attend_in_float32", lambda _: None)
    expected = gradient(job)
    monkeypatch.undo()
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    kinds, attention = set(), torch.nn.functional.scaled_dot_product_attention

    def attend(query: Tensor, *factors: Tensor, **options: object) -> Tensor:
        kinds.add(query.dtype)
        return attention(query, *factors, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attend)
    assert_close(gradient(job), expected, 5e-2)
    assert kinds == {torch.float32}
    train(job)
    assert not [file for file in job.model.rglob("config.json") if "attn" in file.read_text()]


def test_texts_are_packed_where_it_pays(tmp_path: Path) -> None:
    start = write_toy_model(tmp_path / "start", dropout=0)
    for device, options, packs in (
        ("cuda", {"precision": "bfloat16"}, True),
        ("cpu", {"precision": "bfloat16"}, False),
        ("cuda", {"precision": "float32"}, False),
        ("cuda", {"precision": "bfloat16", "dropout": 0.1}, False),
        ("cuda", {"precision": "bfloat16", "dropout": None}, False),
        ("cuda", {"precision": "bfloat16", "attention": "padded"}, False),
    ):
        assert gains_by_packing(replace(job_in(tmp_path, start, **options), device=device)) == packs


def test_models_that_compute_something_else_packed_stay_as_they_are(tmp_path: Path) -> None:
    t5 = SentenceTransformer(str(save_t5(tmp_path / "t5")), device="cpu")
    sizes = {"vocab_size": 99, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    mpnet = MPNetModel(MPNetConfig(**sizes, intermediate_size=8))
    for model in (t5, mpnet, torch.nn.Linear(2, 2)):
        before = [(each.forward, each.config._attn_implementation) for each in _transformers(model)]
        assert not pack_texts(model)
        assert [(each.forward, each.config._attn_implementation) for each in _transformers(model)] == before
    special = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
    sizes |= {"num_hidden_layers": 3, "intermediate_size": 8, "local_attention": 8}
    assert pack_texts(ModernBertModel(ModernBertConfig(**sizes, **special))), "a window is kept"


def _transformers(model: torch.nn.Module) -> list[PreTrainedModel]:
    return [module for module in model.modules() if isinstance(module, PreTrainedModel)]


def test_what_cannot_be_compiled_is_refused(tmp_path: Path) -> None:
    plain = {"compile": True}
    start = write_toy_model(tmp_path / "start")
    for rate in (None, 0.1):
        with pytest.raises(InputError, match="set dropout to 0"):
            train(job_in(tmp_path, start, **plain, dropout=rate))
    with pytest.raises(InputError, match="context cannot be compiled"):
        train(job_in(tmp_path, start, "cde", **plain, context_documents=4))
    with pytest.raises(InputError, match="no transformer; set compile to false"):
        prepare_backbones(job_in(tmp_path, start, **plain), torch.nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("variant", "packs"),
    [
        ("biencoder", False),
        ("xtr", True),
        pytest.param("biencoder", True, marks=pytest.mark.slow),
        pytest.param("xtr", False, marks=pytest.mark.slow),
    ],
)
def test_a_compiled_transformer_gives_the_same_gradient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str, packs: bool
) -> None:
    """Traced as with any backend; torch's own would need a C++ compiler, and minutes."""
    torch._dynamo.reset()
    compiled = []
    backend = aot_autograd(fw_compiler=lambda graph, _: compiled.append(graph) or make_boxed_func(graph))
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    monkeypatch.setattr(gradient_cache, "gains_by_packing", lambda _: packs)
    job = job_in(tmp_path, write_toy_model(tmp_path / "start", dropout=0, layers=3), variant, **OPTIONS[variant])
    expected = gradient(job)
    found = gradient(replace(job, common=job.common.model_copy(update={"compile": True})))
    assert 0 < len(compiled) <= 6, "layers share their code"
    assert_close(found, expected, 1e-4)


def assert_close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    assert (found - expected).norm() < tolerance * expected.norm()


def gradient(job: TrainJob) -> Tensor:
    """Of all parameters, with adapters and gates that have an effect; of unused ones it is 0, or None."""
    learner = build_learner(job)
    learner.model.train()
    for parameter in learner.fresh:
        torch.nn.init.constant_(parameter, 0.5)  # CDE's gates are shut otherwise
    for name, parameter in learner.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1, generator=torch.Generator().manual_seed(len(name)))
    learner.backward(learner.prepare(BatchReader(ShardSet.open(job.shards), job.info.prefixes, 0).read(0, slice(None))))
    trained = [each for each in learner.model.parameters() if each.requires_grad]
    own = [torch.zeros_like(each) if each.grad is None else each.grad for each in trained]
    return torch.cat([each.flatten() for each in own])
