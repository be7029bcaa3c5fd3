"""Both losses, their gradients, the masks and the gap, against ``tests.pretraining.reference``."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.pretraining.reference import encoder_loss, enhanced_loss, rough_model, weak_loss
from tests.pretraining.toys import WEAK, pretrain_job, sequences
from trainers.pretraining import reader
from trainers.pretraining.model import Pretrained, Sequences
from trainers.pretraining.params import Enhanced
from trainers.pretraining.tokens import Stream, join_texts
from trainers.pretraining.train import Pretraining

ENHANCED = Enhanced(kind="retromae", mask_ratio=0.5)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


def some_sequences() -> Sequences:
    """Sequences where one of the chosen tokens stays as it is and one is replaced by another."""
    batch = sequences(3)
    read = batch.read.clone()
    read[0, 1], read[1, 1] = batch.tokens[0, 1], 7
    return batch._replace(read=read)


def assert_same_with_gradients(model: Pretrained, found: Tensor, expected: Tensor) -> None:
    parameters = dict(model.named_parameters())
    assert found.item() == pytest.approx(expected.item(), rel=1e-9)
    gradients = [torch.autograd.grad(loss, list(parameters.values()), allow_unused=True) for loss in (found, expected)]
    for name, one, other in zip(parameters, *gradients, strict=True):
        zero = torch.zeros_like(parameters[name])
        assert torch.allclose(zero if one is None else one, zero if other is None else other, atol=1e-7), name


def test_the_encoder_predicts_the_original_tokens() -> None:
    model, batch = rough_model(None), some_sequences()
    assert_same_with_gradients(model, model(batch).encoder, encoder_loss(model, batch))


def test_the_weak_decoder_is_three_pre_norm_layers_that_predict_the_next_token() -> None:
    model, batch = rough_model(WEAK), some_sequences()
    assert_same_with_gradients(model, model(batch).decoder, weak_loss(model, batch, window=2))


def test_the_enhanced_decoder_queries_with_h0_and_every_sequence_has_its_own_mask() -> None:
    model, batch = rough_model(ENHANCED), some_sequences()
    torch.manual_seed(5)
    hidden = model.decoder._hidden(batch.present)  # type: ignore[union-attr]
    assert (hidden[0] != hidden[1]).any()
    torch.manual_seed(5)
    assert_same_with_gradients(model, model(batch).decoder, enhanced_loss(model, batch, hidden))


@pytest.mark.parametrize("decoder", [WEAK, ENHANCED], ids=["weak", "retromae"])
def test_both_losses_train_the_embeddings_of_tokens_in_no_sequence(decoder) -> None:
    model, batch = rough_model(decoder), some_sequences()
    batch = batch._replace(tokens=batch.tokens.where(batch.tokens != 9, 8), read=batch.read.where(batch.read != 9, 8))
    for loss in model(batch):
        (gradient,) = torch.autograd.grad(loss, model.embeddings, retain_graph=True)
        assert gradient[9].abs().max() > 0


def test_one_pass_of_the_encoder_serves_both_losses() -> None:
    model, calls = rough_model(WEAK), []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    model(some_sequences())
    assert len(calls) == 1


def test_the_gradient_is_that_of_the_sum_of_both_means(monkeypatch) -> None:
    learner, batches = learner_and_batches(monkeypatch)
    learner.backward(1, learner.read(1))
    found = [parameter.grad.clone() for parameter in learner.model.parameters() if parameter.grad is not None]
    (batch,) = batches
    learner.model.zero_grad()
    sums = learner.model(batch)
    (sums.encoder / batch.chosen.sum() + sums.decoder / (batch.present.sum() - len(batch.present))).backward()
    expected = [parameter.grad for parameter in learner.model.parameters() if parameter.grad is not None]
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_each_step_masks_the_same_sequences_differently(monkeypatch) -> None:
    learner, batches = learner_and_batches(monkeypatch)
    monkeypatch.setattr(reader, "batch_numbers", lambda *_: np.arange(6))
    learner.backward(1, learner.read(1))
    learner.backward(2, learner.read(2))
    first, second = batches
    assert torch.equal(first.tokens, second.tokens)
    assert (first.chosen != second.chosen).any(dim=1).sum() > 3


def learner_and_batches(monkeypatch) -> tuple[Pretraining, list[Sequences]]:
    """A learner, and a list that collects the batches that its model is trained on."""
    learner, batches = Pretraining(pretrain_job(Path.cwd(), mini_batch_size=6)), []
    forward = learner.model.forward
    monkeypatch.setattr(learner.model, "forward", lambda batch: batches.append(batch) or forward(batch))
    learner.model.train()
    return learner, batches


def test_padding_and_special_tokens_are_never_chosen_and_never_replace_a_word() -> None:
    learner = Pretraining(pretrain_job(Path.cwd(), mlm_probability=0.9))
    marks, tokenizer = set(learner.tokenizer.all_special_ids), learner.tokenizer
    words = np.array(sorted(set(range(len(tokenizer))) - marks), np.int32)
    text = np.resize(words, 14 * 400 - 9).astype(np.int32)
    text[::7] = tokenizer.sep_token_id
    text[3::7] = tokenizer.unk_token_id
    cut = join_texts(Stream(text, learner.reader.special), 16)
    batch, chosen, wanted = learner.reader.read(cut, np.arange(400), np.random.default_rng(0), slice(None))
    assert not batch.present[-1, -8:].any() and batch.present.sum() == len(text) + 2 * 400 - int(text[-1] == 3)
    is_mark = torch.isin(batch.tokens, torch.tensor(sorted(marks)))
    assert not (batch.chosen & is_mark).any()
    assert not (batch.chosen & ~batch.present).any()
    replaced = (batch.read != batch.tokens) & (batch.read != tokenizer.mask_token_id)
    assert replaced.sum() > 200
    assert not marks & set(batch.read[replaced].tolist())
    assert (chosen, wanted) == (int(batch.chosen.sum()), int(batch.present.sum()) - 400)


def test_the_gap_is_the_loss_with_another_h0_minus_the_loss_with_its_own() -> None:
    learner = Pretraining(pretrain_job(Path.cwd()))
    model = learner.model.eval()
    for parameter in model.parameters():
        parameter.data += 0.5 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2))
    batch, _, wanted = learner.reader.held_out()
    with torch.no_grad():
        h0 = model.encode(batch.read, batch.present)[:, 0]
        gap, count = 0.0, len(h0)
        for row in range(count):
            other = (row - count // 2) % count
            alone = Sequences(*(part[row : row + 1] for part in batch))
            own, foreign = (float(model.decoder_sum(h0[at : at + 1], alone)) for at in (row, other))
            gap += (foreign - own) / wanted
    assert abs(gap) > 1e-3
    assert learner.validate()["h0_gap"] == pytest.approx(gap, rel=1e-3)
