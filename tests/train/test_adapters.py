"""LoRA and what else large models need: the same gradient and model as without, and what cannot be is refused."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import MultiVectorEncoder, SentenceTransformer

from batchwright.core.errors import InputError
from batchwright.formats.shards import ShardSet
from batchwright.retrievers import load_retriever
from batchwright.training.batches import BatchReader
from tests.train.test_backbones import OPTIONS, assert_close, gradient, job_in
from tests.train.test_curves import DEV
from tests.train.test_training import content, die_at_the_sixth_step
from tests.train.toys import (
    INSTRUCTION,
    toy_batch,
    toy_job,
    toy_rows,
    write_toy_model,
    write_toy_qwen3,
    write_toy_shards,
    write_toy_static,
)
from trainers.common import gradient_cache
from trainers.common.packing import Packing, pack_texts, packed
from trainers.variants import build_learner, train

TEXTS = ["w1 w2", "w3 w4 w5 w6", "w7"]


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("starts")
    bert = write_toy_model(folder / "bert", dropout=0)
    return {"bert": bert, **{side: write_toy_qwen3(folder / side, side) for side in ("left", "right")}}


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_causal_model_reads_each_text_up_to_its_last_token_packed_or_padded(
    starts: dict[str, Path], side: str
) -> None:
    model = SentenceTransformer(str(starts[side]), device="cpu")
    one_by_one = np.concatenate([model.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(model.encode(TEXTS), one_by_one, atol=1e-5)
    assert pack_texts(model)
    features = model.preprocess(TEXTS)
    mask = features["attention_mask"].numpy()
    assert mask[2].tolist() == ([0, 0, 0, 1, 1] if side == "left" else [1, 1, 0, 0, 0])
    with torch.no_grad(), packed(Packing.of(mask, mask.shape[1])):
        vectors = model(features)["sentence_embedding"].numpy()
    np.testing.assert_allclose(vectors, one_by_one, atol=1e-5)


@pytest.mark.parametrize(
    ("start", "variant"),
    [("left", "biencoder"), ("right", "biencoder"), ("left", "xtr"), ("left", "cde"), ("bert", "cde")],
)
def test_packing_and_checkpointing_leave_the_gradient_of_adapters_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starts: dict[str, Path], start: str, variant: str
) -> None:
    options = {**OPTIONS[variant], "lora": {"rank": 2, "alpha": 8}}
    expected = gradient(job_in(tmp_path, starts[start], variant, **options))
    assert_close(gradient(job_in(tmp_path, starts[start], variant, **options, mini_batch_size=32)), expected, 1e-5)
    monkeypatch.setattr(gradient_cache, "gains_by_packing", lambda _: True)
    options["checkpointing"] = variant != "cde"
    assert_close(gradient(job_in(tmp_path, starts[start], variant, **options)), expected, 1e-5)


def test_what_an_adapter_drops_is_the_same_in_both_passes(tmp_path: Path, starts: dict[str, Path]) -> None:
    def found(**options: object) -> torch.Tensor:
        return gradient(job_in(tmp_path, starts["left"], lora={"dropout": 0.5}, **options))

    assert torch.equal(found(), found())
    assert_close(found(checkpointing=True), found(), 1e-6)


def test_rounded_weights_give_the_gradient_but_for_rounding(tmp_path: Path, starts: dict[str, Path]) -> None:
    options: dict[str, object] = {"lora": {}, "precision": "bfloat16"}
    exact = gradient(job_in(tmp_path, starts["left"], lora={}))
    rounded = job_in(tmp_path, starts["left"], **options, weights="bfloat16")
    assert_close(gradient(rounded), exact, 0.1)
    kinds = {(each.requires_grad, each.dtype) for each in build_learner(rounded).model.parameters()}
    assert kinds == {(True, torch.float32), (False, torch.bfloat16)}


@pytest.mark.parametrize(
    ("start", "variant", "more"),
    [
        ("left", "biencoder", {}),
        ("left", "biencoder", {"weights": "bfloat16", "precision": "bfloat16"}),
        ("bert", "seed_encoder", {"lora": {"rank": 2, "targets": ["query", "value"]}}),
        ("bert", "cde", {}),
        ("bert", "xtr", {"width": 8}),
    ],
)
def test_a_trained_model_is_plain_and_has_its_adapters_beside_it(
    tmp_path: Path, starts: dict[str, Path], start: str, variant: str, more: dict[str, object]
) -> None:
    options = {**OPTIONS[variant], "lora": {"rank": 2}, "steps": 2, "learning_rate": 1e-2, **more}
    job = job_in(tmp_path, starts[start], variant, **options)
    train(job)

    weights = load_file(next(job.model.rglob("model.safetensors")))
    before = load_file(starts[start] / "model.safetensors")
    assert weights.keys() == before.keys()
    assert {each.dtype for each in weights.values()} == {getattr(torch, str(options.get("weights", "float32")))}
    changed = {key for key, each in weights.items() if not torch.equal(each, before[key].to(each.dtype))}
    targets = ("query.weight", "value.weight") if variant == "seed_encoder" else ("weight",)
    assert changed and all(key.endswith(targets) and "norm" not in key.lower() for key in changed)
    assert not any("embed" in key for key in changed)

    card = (job.model / "README.md").read_text()
    assert "adapters of rank 2 beside " in card
    assert ("the layers query, value" in card) == (variant == "seed_encoder")
    assert ("rank: 2" in card, str(tmp_path) in card) == (True, False)
    adapters = sorted(job.model.glob("adapter/**/adapter_config.json"))
    assert len(adapters) == (2 if variant == "cde" else 1)
    assert json.loads(adapters[0].read_text())["base_model_name_or_path"] == starts[start].name
    load_retriever(job.model).index(TEXTS).search(["w1"], 1)

    if variant in ("biencoder", "seed_encoder"):
        ours, theirs = (SentenceTransformer(str(folder), device="cpu").float() for folder in (job.model, starts[start]))
        theirs[1] = ours[1]  # SEED-Encoder's pooling
        assert not np.allclose(theirs.encode(TEXTS), ours.encode(TEXTS), atol=1e-3)
        theirs.load_adapter(str(job.model / "adapter"))
        np.testing.assert_allclose(theirs.encode(TEXTS), ours.encode(TEXTS), atol=3e-2 if "weights" in more else 1e-5)
    if variant == "xtr":
        MultiVectorEncoder(str(job.model), device="cpu").encode_query(TEXTS)


def test_instructions_of_the_start_model_come_before_queries_in_training_search_and_elsewhere(
    tmp_path: Path, starts: dict[str, Path]
) -> None:
    job = job_in(tmp_path, starts["left"], lora={}, steps=1)
    batch = BatchReader(ShardSet.open(job.shards), job.info.prefixes, 0).read(0, slice(None))
    assert all(query.startswith(INSTRUCTION) for query in batch.queries)
    assert not any(document.startswith("Instruct") for document in batch.documents)
    train(job)
    model = SentenceTransformer(str(job.model), device="cpu")
    ours = load_retriever(job.model).encode_queries(TEXTS)
    np.testing.assert_allclose(model.encode_query(TEXTS), ours, atol=1e-5)
    np.testing.assert_allclose(model.encode([INSTRUCTION + text for text in TEXTS]), ours, atol=1e-5)
    assert not np.allclose(model.encode_document(TEXTS), ours, atol=1e-2)


def test_checkpoints_hold_what_is_trained_and_a_resumed_run_gives_the_same_bytes(
    tmp_path: Path, starts: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(6, seed)) for seed in range(8)])
    options: dict[str, object] = {"lora": {"rank": 2}, "weights": "bfloat16", "precision": "bfloat16"}
    options["evaluate_every"] = 2  # of the one that has queries for it
    whole = toy_job(tmp_path / "whole", starts["left"], shards, **options)
    killed = toy_job(tmp_path / "killed", starts["left"], shards, dev=DEV, **options)
    train(whole)
    calls = die_at_the_sixth_step(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(killed)
    name = max(killed.storage.names())
    with killed.storage.fetch(name) as folder:
        state = torch.load(folder / "state.pt", weights_only=True)
    assert all("lora_" in key for key in state["model"])
    assert len(state["optimiser"]["state"]) == len(state["model"])
    train(killed)
    assert len(calls) == 9, "it went on after the fifth of eight steps"
    assert content(killed.model) == content(whole.model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lora": {}, "variant": "static"}, r"has no transformer; set lora to null"),
        ({"checkpointing": True, "variant": "static"}, r"has no transformer; set checkpointing to false"),
        ({"checkpointing": True, "variant": "cde"}, r"cannot be computed again; set checkpointing to false"),
        ({"weights": "bfloat16"}, r"weights: bfloat16 needs lora.* and precision"),
        ({"weights": "bfloat16", "lora": {}}, r"weights: bfloat16 needs lora.* and precision"),
        (
            {"weights": "bfloat16", "lora": {}, "precision": "bfloat16", "variant": "cde"},
            r"not for attention to a context; set weights to float32",
        ),
        ({"lora": {"targets": ["query", "q_proj"]}}, r"lora.targets has q_proj, but .* linear layers are dense, key,"),
        ({"lora": {"targets": ["LayerNorm"]}}, r"train biencoder: lora: Target module LayerNorm"),
        ({"lora": {"dropout": 0.1}, "compile": True}, r"does not go together with dropout"),
        ({"fsdp": True, "mini_batch_size": "auto"}, r"fsdp needs mini_batch_size as a number"),
        ({"fsdp": True, "compile": True}, r"set compile or fsdp to false"),
        ({"fsdp": True, "variant": "cde"}, r"are not shared; set fsdp to false"),
        ({"fsdp": True, "variant": "static"}, r"has no transformer; set fsdp to false"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, starts: dict[str, Path], options: dict[str, object], message: str
) -> None:
    start, variant = starts["bert"], options.pop("variant", "biencoder")
    if variant == "static":
        write_toy_static(starts["bert"], start := tmp_path / "static", 0)
    with pytest.raises(InputError, match=message):
        build_learner(job_in(tmp_path, start, "cde" if variant == "cde" else "biencoder", **options))


def test_lora_without_peft_says_what_to_install(
    tmp_path: Path, starts: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    find: Callable[..., object] = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "peft" else find(name, *more))
    job_in(tmp_path, starts["bert"])
    with pytest.raises(InputError, match="lora needs the package peft; pip install peft"):
        job_in(tmp_path, starts["bert"], lora={})
