"""The models that the paper's authors published."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from batchwright.core.errors import InputError
from batchwright.retrievers import ModelInfo, load_retriever
from batchwright.retrievers.cde.retriever import ContextualIndex, ContextualRetriever, load_contextual
from stages.fetch import main
from tests.cde.published import COUNT, DOCUMENTS, PROMPTS, VERSIONS, Version, expected, publish
from tests.cde.test_training import ROWS, _batch, _gradient, _plain_gradient, assert_close
from tests.helpers import WORDS, write_params
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_shards
from trainers.cde.learner import ContextualLearner
from trainers.cde.start import Params, start_from
from trainers.variants import train

CORPUS = [f"{one} {other}" for one in WORDS[:10] for other in WORDS[:10]]
TEXTS = ["w1 w2 w3", "two", " ".join(WORDS[:10])]
START = Path("models/start/made")
each_version = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def folder(workspace: Path, version: Version) -> Path:
    return publish(Path("raw/models/published"), version)


def fetch(folder: Path, **changes: object) -> Path:
    entry = {"name": str(folder), "max_length": 48, **changes}
    write_params(Path(), {"start_models": {"made": entry}})
    main("made")
    return START


def unit(vectors: Tensor | np.ndarray) -> Tensor:
    return torch.nn.functional.normalize(torch.as_tensor(vectors), dim=1)


@each_version
def test_vectors_are_those_of_the_published_code_with_and_without_context(folder: Path, version: Version) -> None:
    model = load_contextual(folder, "cpu")
    encoder = model[0]
    for corpus in (None, CORPUS):
        if corpus:
            encoder.fit_context(corpus)
        context = encoder.context.texts if encoder.context else []
        assert len(context) == (DOCUMENTS[version] if corpus else 0)
        for side, prefix in PROMPTS.items():
            found = (model.encode_query if side == "query" else model.encode_document)(TEXTS)
            wanted = expected(version, [prefix + text for text in TEXTS], context)
            torch.testing.assert_close(unit(found), unit(wanted), atol=1e-5, rtol=0)
    assert not Path("it ran").exists()


@each_version
def test_a_fetched_one_searches_as_published_and_is_what_was_read(folder: Path, version: Version) -> None:
    raw, made = load_contextual(folder, "cpu"), load_contextual(fetch(folder), "cpu")
    before, after = raw.state_dict(), made.state_dict()
    assert before.keys() == after.keys()
    assert [name for name in before if not torch.equal(before[name], after[name])] == []
    assert raw[0].get_config_dict() == made[0].get_config_dict() | {"unpooled_prefixes": raw[0].unpooled_prefixes}
    assert ModelInfo.read(START).prefixes.default.model_dump() == PROMPTS
    retriever = load_retriever(START)
    assert isinstance(retriever, ContextualRetriever)
    index = retriever.index(CORPUS)
    assert isinstance(index, ContextualIndex)
    wanted = expected(version, [PROMPTS["document"] + text for text in CORPUS[:3]], index.contexts[None].texts)
    torch.testing.assert_close(torch.tensor(index.vectors[:3]), unit(wanted), atol=1e-5, rtol=0)
    assert not Path("it ran").exists()


@each_version
def test_a_fetched_one_is_trained_further_in_all_its_parts(folder: Path, version: Version, tmp_path: Path) -> None:
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(ROWS, seed)) for seed in range(3)])
    options = {"context": "prompted", "context_documents": 4, "context_dropout": 0, "pool_prefix": version == "v1"}
    made = fetch(folder)
    whole = _plain_gradient(toy_job(tmp_path / "job", made, shards, "cde", **options))
    job = toy_job(tmp_path / "job", made, shards, "cde", mini_batch_size=3, **options)
    assert_close(_gradient(job), whole)
    train(job)
    encoders = [load_contextual(each, "cpu")[0] for each in (made, job.model)]
    before, after = (each.state_dict() for each in encoders)
    moved = {name.partition(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert moved == {"prompts", "first", "second"}
    old, new = (each.get_config_dict() for each in encoders)
    prefixes = sorted(PROMPTS.values()) if version == "v2" else []
    assert new == old | {"documents": 4} and sorted(new["unpooled_prefixes"]) == prefixes


@pytest.mark.parametrize("version", ["v1"])
def test_other_steps_without_context_train_its_prompts(folder: Path, tmp_path: Path) -> None:
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(ROWS, seed)) for seed in range(3)])
    options = {"context": "prompted", "context_documents": 4, "context_dropout": 1}
    learner = ContextualLearner(toy_job(tmp_path / "job", fetch(folder), shards, "cde", **options))
    learner.backward(learner.prepare(_batch(learner._job, 0)))
    gradient = learner.encoder.prompts.grad
    assert gradient is not None and gradient.shape[0] == COUNT and (gradient != 0).any(dim=1).all()


@pytest.mark.parametrize(
    ("version", "changes", "message"),
    [
        ("v1", {"second_stage_model.prompt_projection.2.bias": None}, r"no tensor '{}'"),
        ("v1", {"first_stage_model.embedder.embeddings.word_embeddings.weight": None}, r"no tensor '{}'"),
        ("v1", {"second_stage_model.backbone.emb_ln.bias": None}, r"tensor 'second_.*LayerNorm.bias' .* is missing"),
        ("v2", {"second_stage_model.backbone.layers.1.mlp.Wi.weight": None}, r"tensor '{}' .* is missing"),
        ("v2", {"second_stage_model.backbone.layers.7.mlp.Wi.bias": (3,)}, r"tensor '.*' .* is (missing|not known)"),
        ("v2", {"first_stage_model.embedder.final_norm.weight": (9,)}, r"tensor '{}' .* has another shape"),
        ("v1", {"second_stage_model.output_projection.0.weight": (9, 9)}, r"'{}' .* the shape \(9, 9\), and needs \(1"),
        ("v1", {"second_stage_model.sequence_dropout_null_embedding": (9,)}, r"tensor '{}' .* is not known"),
    ],
)
def test_a_wrong_or_incomplete_set_of_tensors_is_refused(
    folder: Path, changes: dict[str, tuple[int, ...] | None], message: str
) -> None:
    file = folder / "model.safetensors"
    found = load_file(file)
    for name, shape in changes.items():
        found.pop(name, None)
        found |= {} if shape is None else {name: torch.zeros(shape)}
    save_file(found, file)
    with pytest.raises(InputError, match="model 'raw/models/published': .*" + message.format(re.escape(*changes))):
        fetch(folder)
    assert not START.exists()


@pytest.mark.parametrize("version", ["v1"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool_ignore_contextual_tokens": False}, "pool_ignore_contextual_tokens is False in its config.json"),
        ({"pooling_strategy": "last_token"}, "pooling_strategy is 'last_token' in its config.json"),
        ({"embedder": "bert-base-uncased"}, "its stages are bert-base-uncased .*; only models of nomic-ai/nomic-bert"),
        ({"dataset_backbone": "gpt2"}, "its stages are gpt2, nomic-ai/nomic-bert-2048"),
    ],
)
def test_another_kind_of_model_is_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    with pytest.raises(InputError, match=f"model 'raw/models/published': {message}"):
        fetch(folder)
    assert not START.exists()


@pytest.mark.parametrize("version", ["v2"])
def test_its_context_keeps_its_form_which_no_other_start_model_has(folder: Path, tmp_path: Path) -> None:
    info = ModelInfo(variant="cde", max_length=16)
    with pytest.raises(InputError, match=r"its context is prompted; set parameter 'train\.cde\.context' to prompted"):
        start_from(fetch(folder), Params(), info)
    with pytest.raises(
        InputError, match=r"leaves prefixes out of .*; set parameter 'train\.cde\.pool_prefix' to false"
    ):
        start_from(START, Params(context="prompted"), info)
    with pytest.raises(InputError, match=r"has no prompts, .*; set parameter 'train\.cde\.context' to gated"):
        start_from(tmp_path, Params(context="prompted"), info.model_copy(update={"variant": "biencoder"}))
