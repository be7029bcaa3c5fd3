"""Training that continues from a CDE folder, as a round with mined negatives does."""

import shutil
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import yaml
from pydantic import ValidationError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.formats.models import Prefix
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder, Form
from batchwright.retrievers.cde.folder import CONTEXT
from batchwright.retrievers.cde.retriever import load_contextual, save_contextual
from stages.train import main
from tests.cde.encoders import FORMS, KINDS, encoder, sentence_model
from tests.tiny_models import word_pieces
from tests.train.toys import COMMON, toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.cde import Params, start
from trainers.common.params import Common
from trainers.variants import train

FIRST_STAGES: list[Literal["shared", "separate"]] = ["shared", "separate"]
PREFIXES = {"default": {"query": "ask: ", "document": "say: "}}


def start_from(
    folder: Path, max_length: int = 16, prefixes: object = None, variant: str = "cde", **changes: object
) -> ContextualEncoder:
    params = Params.model_validate({"temperature": 0.1, "context_documents": 3, **changes})
    info = ModelInfo.model_validate({"variant": variant, "max_length": max_length, "prefixes": prefixes or {}})
    return start.start_from(folder, params, info)


def save(folder: Path, kind: str = "learned", **options: object) -> Path:
    """Save a CDE folder with different weights in each stage, and a fitted context."""
    made = encoder(kind, **options)
    made.fit_context(["one two", "three", "four five six"])
    save_contextual(SentenceTransformer(modules=[made], device="cpu"), folder, Prefix(query="old: ", document="old: "))
    assert (folder / CONTEXT).exists()
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first_stage", FIRST_STAGES)
@pytest.mark.parametrize(("form", "new"), [("gated", {"gate"}), ("sequence", {"null", "bias"})])
def test_everything_trained_is_kept_bit_for_bit(
    tmp_path: Path, kind: str, first_stage: str, form: Form, new: set[str]
) -> None:
    shared = first_stage == "shared"
    made = start_from(save(tmp_path / "cde", kind, shared=shared, form=form), first_stage=first_stage, context=form)
    assert made.shared == shared != (tmp_path / "cde" / "first").exists()
    found, expected = made.state_dict(), encoder(kind, shared=shared, form=form).state_dict()
    assert found.keys() == expected.keys()
    assert new == {name for name in found if "." not in name}
    assert [name for name in found if not torch.equal(found[name], expected[name])] == []


def test_the_settings_are_this_trainings_and_the_fitted_context_is_dropped(tmp_path: Path) -> None:
    folder = save(tmp_path / "cde", documents=5, unpooled_prefixes=["old: "])
    made = start_from(folder, prefixes=PREFIXES, pool_prefix=False)
    assert (made.documents, made.max_seq_length, made.unpooled_prefixes) == (3, 16, ["ask: ", "say: "])
    assert made.context is None
    assert start_from(folder, prefixes=PREFIXES).unpooled_prefixes == []


def test_folders_that_cannot_be_continued_from_are_refused(tmp_path: Path) -> None:
    folder = save(tmp_path / "cde")
    with pytest.raises(InputError, match="cde': reads 512 tokens; lower max_length from 513"):
        start_from(folder, max_length=513)
    (folder / "gate.safetensors").write_bytes(b"cut off")
    with pytest.raises(InputError, match="cde': cannot be loaded"):
        start_from(folder)


def test_stages_share_weights_only_if_asked_to(tmp_path: Path) -> None:
    sentence_model().save(str(tmp_path / "start"), create_model_card=False)
    info = ModelInfo(variant="biencoder", max_length=16)
    one, two = (
        start.start_from(tmp_path / "start", Params(temperature=0.1, context_documents=3, first_stage=each), info)
        for each in FIRST_STAGES
    )
    own = len(list(sentence_model().parameters()))
    assert [len(list(each.parameters())) for each in (one, two)] == [own + 1, 2 * own + 1]
    for name, value in two.first.state_dict().items():
        assert torch.equal(value, two.second.state_dict()[name])


@pytest.mark.parametrize(("found", "needed"), [("one encoder", "shared"), ("two encoders", "separate")])
def test_stages_are_neither_split_nor_merged(tmp_path: Path, found: str, needed: str) -> None:
    folder = save(tmp_path / "cde", shared=needed == "shared")
    other = {"shared": "separate", "separate": "shared"}[needed]
    with pytest.raises(InputError, match=rf"cde': has {found}; set parameter 'train\.cde\.first_stage' to {needed}"):
        start_from(folder, first_stage=other)


@pytest.mark.parametrize(
    ("has", "asks", "message"),
    [
        ({}, {"context": "sequence"}, r"its context is gated; set parameter 'train\.cde\.context' to gated"),
        ({"form": "sequence"}, {}, r"its context is sequence; set parameter 'train\.cde\.context' to sequence"),
        (
            {"form": "sequence"},
            {"context": "sequence", "context_bias": None},
            r"has a bias; set parameter 'train\.cde\.context_bias' to a number",
        ),
        (
            {"form": "sequence", "bias": None},
            {"context": "sequence"},
            r"has no bias; set parameter 'train\.cde\.context_bias' to null",
        ),
    ],
)
def test_a_context_keeps_its_form(tmp_path: Path, has: dict[str, Any], asks: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        start_from(save(tmp_path / "cde", **has), **asks)


@pytest.mark.parametrize("form", FORMS)
def test_the_first_stage_can_be_a_model_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(6))])
    one, other = (write_toy_model(Path("models/start") / name, layers=layers) for name, layers in (("a", 2), ("b", 1)))
    options = {"first_stage": "models/start/b", "context": form}
    rates = {"learning_rate": 1e-9, "new_learning_rate": 1e-9}
    jobs = [toy_job(tmp_path / "job", one, shards, "cde", **options, **rates)]
    train(jobs[0])
    made = load_contextual(jobs[0].model)[0]
    for stage, folder in ((made.first, other), (made.second, one)):
        torch.testing.assert_close(
            stage.encode("w1 w2", convert_to_tensor=True),
            SentenceTransformer(str(folder)).encode("w1 w2", convert_to_tensor=True),
        )
    assert len(start_from(one, variant="biencoder", **options).first[0].model.encoder.layer) == 1
    assert "first_stage: models/start/b" in (jobs[0].model / "README.md").read_text()
    shutil.rmtree(other)
    write_toy_model(other, layers=3)
    jobs.append(toy_job(tmp_path / "job", one, shards, "cde", **options, **rates))
    assert jobs[0].scratch != jobs[1].scratch, "what was begun with another model does not go on"
    with pytest.raises(InputError, match=r"two encoders; set parameter 'train\.cde\.first_stage' to separate"):
        train(toy_job(tmp_path / "next", jobs[0].model, shards, "cde", **options))
    with pytest.raises(InputError, match="models/start/c': no such folder"):
        toy_job(tmp_path / "job", one, shards, "cde", first_stage="models/start/c")


@pytest.mark.parametrize(("option", "value"), [("context_bias", -3), ("context_bias", None), ("null_share", 0)])
def test_what_only_a_sequence_has_is_refused_with_gates(option: str, value: object) -> None:
    params = Params.model_validate({option: value})
    with pytest.raises(InputError, match=f"train cde: {option} is for context: sequence; set one of the two"):
        params.check("cde", Common())
    Params.model_validate({option: value, "context": "sequence"}).check("cde", Common())


def test_a_misspelt_first_stage_is_no_path() -> None:
    with pytest.raises(ValidationError, match="first_stage"):
        Params.model_validate({"first_stage": "seperate"})


def test_a_prefix_cannot_stay_out_of_a_cls_state(tmp_path: Path) -> None:
    sentence_model(pooling="cls").save(str(tmp_path / "cls"), create_model_card=False)
    info = ModelInfo(variant="biencoder", max_length=16)
    with pytest.raises(InputError, match=r"cls': does not take a mean over tokens.*'train\.cde\.pool_prefix' to true"):
        start.start_from(tmp_path / "cls", Params(temperature=0.1, context_documents=3, pool_prefix=False), info)


def test_a_start_model_without_attention_layers_is_refused(tmp_path: Path) -> None:
    static = SentenceTransformer(modules=[StaticEmbedding(word_pieces(), embedding_dim=8)], device="cpu")
    static.save(str(tmp_path / "static"), create_model_card=False)
    info = ModelInfo(variant="biencoder", max_length=16)
    with pytest.raises(InputError, match="static': begins with StaticEmbedding; CDE needs a transformer"):
        start.start_from(tmp_path / "static", Params(temperature=0.1, context_documents=2), info)


def test_the_stage_continues_from_its_own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("BATCHWRIGHT_TRAIN_WORKERS", "BATCHWRIGHT_SCRATCH"):
        monkeypatch.delenv(variable, raising=False)
    write_toy_model(tmp_path / "start")
    for round_, seed in (("contextual", 0), ("mined-1", 50)):
        batches = [toy_batch(toy_rows(6, seed + step, negatives=1)) for step in range(3)]
        write_toy_shards(tmp_path / "data" / "shards" / round_, batches)
    groups = {"common": COMMON, "cde": {"temperature": 0.05, "context_documents": 4, "context_dropout": 0}}
    runs = {
        "cde": {"variant": "cde", "batches": "contextual", "start": "start"},
        "cde-mined-1": {"variant": "cde", "batches": "mined-1", "start": "models/cde", "hard_negatives": 1},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({"base": {"seed": 3}, "train": groups, "runs": runs}))
    for run in runs:
        main(run)
    assert read_json(Path("results/train/cde-mined-1.json"), made_by="train")["steps"] == 3
    first, second = (load_contextual(Path("models") / name)[0].state_dict() for name in ("cde", "cde-mined-1"))
    assert all(
        (first[name] != second[name]).any() for name in ("gate", "first.0.model.encoder.layer.0.output.dense.weight")
    )
