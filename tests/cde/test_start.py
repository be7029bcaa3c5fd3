"""Training that continues from a CDE folder, as a round with mined negatives does."""

from pathlib import Path
from typing import Literal

import pytest
import torch
import yaml
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.formats.models import Prefix
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.cde.contextual_encoder import CONTEXT, ContextualEncoder
from batchwright.retrievers.cde.retriever import load_contextual, save_contextual
from stages.train import main
from tests.cde.encoders import KINDS, encoder, sentence_model
from tests.tiny_models import word_pieces
from tests.train.toys import COMMON, toy_batch, toy_rows, write_toy_model, write_toy_shards
from trainers.cde import Params, start

FIRST_STAGES: list[Literal["shared", "separate"]] = ["shared", "separate"]
PREFIXES = {"default": {"query": "ask: ", "document": "say: "}}


def start_from(folder: Path, max_length: int = 16, prefixes: object = None, **changes: object) -> ContextualEncoder:
    params = Params.model_validate({"temperature": 0.1, "context_documents": 3, **changes})
    info = ModelInfo.model_validate({"variant": "cde", "max_length": max_length, "prefixes": prefixes or {}})
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
def test_everything_trained_is_kept_bit_for_bit(tmp_path: Path, kind: str, first_stage: str) -> None:
    shared = first_stage == "shared"
    made = start_from(save(tmp_path / "cde", kind, shared=shared), first_stage=first_stage)
    assert made.shared == shared != (tmp_path / "cde" / "first").exists()
    found, expected = made.state_dict(), encoder(kind, shared=shared).state_dict()
    assert found.keys() == expected.keys()
    assert {"gate"} < found.keys()
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
    train = {"common": COMMON, "cde": {"temperature": 0.05, "context_documents": 4, "context_dropout": 0}}
    runs = {
        "cde": {"variant": "cde", "batches": "contextual", "start": "start"},
        "cde-mined-1": {"variant": "cde", "batches": "mined-1", "start": "models/cde", "hard_negatives": 1},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({"base": {"seed": 3}, "train": train, "runs": runs}))
    for run in runs:
        main(run)
    assert read_json(Path("results/train/cde-mined-1.json"), made_by="train")["steps"] == 3
    first, second = (load_contextual(Path("models") / name)[0].state_dict() for name in ("cde", "cde-mined-1"))
    assert all(
        (first[name] != second[name]).any() for name in ("gate", "first.0.model.encoder.layer.0.output.dense.weight")
    )
