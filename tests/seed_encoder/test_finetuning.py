"""The model that fine-tuning starts from."""

import json
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from batchwright.core.errors import InputError
from batchwright.retrievers.common.model_folder import load_model
from tests.tiny_models import save_t5
from tests.train.toys import toy_batch, toy_job, toy_rows, toy_tokenizer, write_toy_model, write_toy_shards
from trainers.common.job import TrainJob
from trainers.common.sentence_learner import embed
from trainers.seed_encoder import build_learner


def seed_job(folder: Path, start: Path) -> TrainJob:
    shards = write_toy_shards(folder / "shards", [toy_batch(toy_rows(6))])
    return toy_job(folder, start, shards, variant="seed_encoder")


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


@pytest.mark.parametrize("name", ["toy", "toy-bert"], ids=["mean pooling", "a plain BERT"])
def test_the_vector_is_the_cls_state_whatever_pooling_the_folder_has(tmp_path: Path, name: str) -> None:
    write_toy_model(tmp_path / "toy")
    model = build_learner(seed_job(tmp_path, tmp_path / name)).model.eval()
    features = model.preprocess(["w1 w2 w3", "w4"])
    states = model[0].auto_model(**{key: features[key] for key in ("input_ids", "attention_mask")}).last_hidden_state
    expected = torch.nn.functional.normalize(states[:, 0], dim=-1)
    assert torch.allclose(embed(model, features), expected, atol=1e-6)
    model.save(str(tmp_path / "saved"), create_model_card=False)
    saved = load_model(tmp_path / "saved", 16, "cpu").eval()
    assert torch.allclose(embed(saved, saved.preprocess(["w1 w2 w3", "w4"])), expected, atol=1e-6)


def test_a_model_without_a_cls_state_is_refused(tmp_path: Path) -> None:
    static = StaticEmbedding(toy_tokenizer(), embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path / "static"), create_model_card=False)
    for number, start in enumerate((tmp_path / "static", save_t5(tmp_path / "t5"))):
        with pytest.raises(InputError, match=f"model '{start}': has no CLS state; use an encoder such as BERT"):
            build_learner(seed_job(tmp_path / str(number), start))


@pytest.mark.parametrize("change", [{"hidden_size": 8}, {"vocab_size": 9}])
def test_weights_whose_shapes_contradict_config_json_are_refused(tmp_path: Path, change: dict[str, int]) -> None:
    file = write_toy_model(tmp_path / "toy") / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match=r"the shapes of its weights do not match its config.json"):
        load_model(tmp_path / "toy", 16, "cpu")
