"""Whole pre-training runs of a tiny model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.modules.module import register_module_forward_hook
from transformers import AutoModel, AutoTokenizer
from transformers.models.bert.modeling_bert import BertIntermediate

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from tests.helpers import tree, write_pairs
from tests.pretraining.toys import DROPPING, ENCODER, pretrain_job
from tests.train.ranks import WORLD, run_ranks
from trainers.common import step_loop
from trainers.common.distributed import sum_gradients
from trainers.common.memory import GPU_TOKENS, Memory
from trainers.common.step_loop import Row
from trainers.pretraining.job import PretrainJob
from trainers.pretraining.reader import Masked
from trainers.pretraining.tokens import Stream, join_texts
from trainers.pretraining.train import Pretraining, pretrain


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_GPUS", "0")
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))


def first_gradient(job: PretrainJob) -> Tensor:
    torch.manual_seed(0)
    learner = Pretraining(job)
    learner.model.train()
    learner.backward(1, learner.read(1))
    sum_gradients(learner.model.parameters())
    return torch.cat([each.grad.flatten() for each in learner.model.parameters() if each.grad is not None])


def test_chunks_give_the_gradient_of_the_whole_batch(tmp_path: Path) -> None:
    whole, *parts = (first_gradient(pretrain_job(tmp_path, mini_batch_size=chunk)) for chunk in (6, 4, 1))
    for part in parts:
        assert torch.cosine_similarity(whole, part, dim=0) > 0.99999
        assert part.norm() / whole.norm() == pytest.approx(1, abs=1e-4)


def test_dropout_is_what_the_parameters_say_whatever_the_encoder_drops(tmp_path: Path) -> None:
    own, same, none, default, other = (
        first_gradient(pretrain_job(tmp_path, encoder=DROPPING, **rate))
        for rate in ({"dropout": None}, {"dropout": 0.1}, {"dropout": 0}, {}, {"dropout": 0.2})
    )
    assert torch.equal(own, same)
    assert torch.equal(none, default)
    assert not torch.equal(own, none)
    assert not torch.equal(own, other)


def test_half_as_many_sequences_until_they_fit_give_the_same_gradient_and_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory, a pretended one, is too small to validate more than four or to train more than two at once."""
    job = pretrain_job(tmp_path, mini_batch_size=6)
    expected, losses = first_gradient(job), validated(job)

    def too_small(rows: int, room: int) -> None:
        if rows > room:
            raise torch.OutOfMemoryError("CUDA out of memory")

    def watch(module: nn.Module, _: object, output: Tensor) -> None:
        if isinstance(module, BertIntermediate):
            too_small(len(output), 4)
            if output.requires_grad:
                output.register_hook(lambda gradient: too_small(len(gradient), 2))

    monkeypatch.setattr(Memory, "of", lambda *_: Memory(GPU_TOKENS, adapts=True))
    with register_module_forward_hook(watch):
        found, again = first_gradient(job), validated(job)
    assert torch.cosine_similarity(expected, found, dim=0) > 0.99999
    assert found.norm() / expected.norm() == pytest.approx(1, abs=1e-4)
    assert again == pytest.approx(losses, rel=1e-5, abs=1e-5)


def validated(job: PretrainJob) -> Row:
    torch.manual_seed(0)
    return Pretraining(job).validate()


@pytest.mark.parametrize("decoder", ["weak", "retromae"])
def test_two_processes_give_the_gradient_and_the_curve_of_one(tmp_path: Path, decoder: str) -> None:
    """With chunks of another size; what ``retromae`` hides is drawn like dropout, so it hides nothing here."""
    own = {"kind": decoder, **({"mask_ratio": 0} if decoder == "retromae" else {})}
    one, two = (
        pretrain_job(tmp_path / name, decoder=own, mini_batch_size=size) for name, size in (("one", 6), ("two", 2))
    )
    torch.save(first_gradient(one), tmp_path / "gradient-1.pt")
    pretrain(one)
    run_ranks(_work, two, tmp_path)
    whole, first, second = (torch.load(tmp_path / f"gradient{rank}.pt") for rank in (-1, 0, 1))
    assert torch.equal(first, second)
    assert torch.cosine_similarity(whole, first, dim=0) > 0.99999
    assert first.norm() / whole.norm() == pytest.approx(1, abs=1e-4)
    tables = [read_tsv(job.results / "seed_encoder.tsv", "pretrain") for job in (one, two)]
    curves = [[float(row["loss"]) for row in table] for table in tables]
    assert curves[0] == pytest.approx(curves[1], rel=1e-4)


def _work(rank: int, job: PretrainJob, folder: Path) -> None:
    dist.init_process_group("gloo", store=dist.FileStore(str(folder / "store"), WORLD), rank=rank, world_size=WORLD)
    torch.save(first_gradient(job), folder / f"gradient{rank}.pt")
    pretrain(job)
    dist.destroy_process_group()


def test_two_runs_and_a_killed_and_resumed_one_give_the_same_bytes(tmp_path: Path, monkeypatch) -> None:
    jobs = [pretrain_job(tmp_path / name, dropout=0.1) for name in ("first", "second", "killed")]
    pretrain(jobs[0])
    pretrain(jobs[1])
    monkeypatch.setattr(step_loop, "SAVE_EVERY_SECONDS", 0.0)
    backward, calls = Pretraining.backward, []

    def die_at_the_fourth(learner: Pretraining, step: int, batch: Masked) -> object:
        calls.append(step)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return backward(learner, step, batch)

    monkeypatch.setattr(Pretraining, "backward", die_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        pretrain(jobs[2])
    assert not jobs[2].model.exists()
    for curve in ("seed_encoder.tsv", "seed_encoder-validation.tsv"):  # what could be seen until then
        seen, whole = (read_tsv(job.results / curve, "pretrain") for job in (jobs[2], jobs[0]))
        assert 0 < len(seen) < len(whole) and seen == whole[: len(seen)]
    pretrain(jobs[2])
    assert calls == [0, 1, 2, 3, 3, 4, 5]
    for job in jobs[1:]:
        assert tree(job.model) == tree(jobs[0].model)
        assert tree(job.results) == tree(jobs[0].results)


def test_curves_validation_and_diagnostics_are_written(tmp_path: Path) -> None:
    job = pretrain_job(tmp_path, decoder={"kind": "weak", "layers": 1, "window": 8})
    pretrain(job)
    curve, validation, lengths, positions = (
        read_tsv(job.results / f"seed_encoder{name}.tsv", "pretrain")
        for name in ("", "-validation", "-length", "-position")
    )
    assert [row["step"] for row in curve] == list("123456")
    for row in curve:
        assert float(row["loss"]) == pytest.approx(float(row["mlm"]) + float(row["decoder"]), abs=1e-3)
    assert [row["step"] for row in validation] == ["0", "3", "6"]
    assert {"mlm", "decoder", "h0_gap"} < set(validation[0])
    assert [row["length"] for row in lengths] == ["8", "16"]
    assert [row["position"] for row in positions] == [str(place) for place in range(15)]
    assert all(-1 <= float(row["cosine"]) <= 1.001 for row in [*lengths, *positions])


@pytest.mark.parametrize("decoder", [{"kind": "weak"}, {"kind": "retromae"}, None], ids=["weak", "retromae", "mlm"])
def test_the_saved_encoder_is_plain_and_the_same_without_the_decoder(tmp_path: Path, decoder) -> None:
    job = pretrain_job(tmp_path, decoder=decoder)
    pretrain(job)
    learner = Pretraining(pretrain_job(tmp_path, encoder={"kind": "start", "model": str(job.model)}, decoder=decoder))
    plain = AutoModel.from_pretrained(job.model)
    assert {name: value.tolist() for name, value in plain.state_dict().items()} == {
        name: value.tolist() for name, value in learner.model.encoder.state_dict().items()
    }
    texts = ["topic1 q0 3 w5 w7", "topic2 d0"]
    features = AutoTokenizer.from_pretrained(job.model)(texts, padding=True, return_tensors="pt")
    expected = plain.eval()(**features).last_hidden_state[:, 0]
    found = learner.model.eval().encode(features["input_ids"], features["attention_mask"])[:, 0]
    assert torch.equal(found, expected)
    vectors = SentenceTransformer(str(job.model), device="cpu").encode(texts, convert_to_tensor=True)
    assert torch.equal(vectors, expected)


def test_without_a_decoder_its_columns_are_not_written(tmp_path: Path) -> None:
    job = pretrain_job(tmp_path, decoder=None)
    pretrain(job)
    curve, validation = (read_tsv(job.results / f"seed_encoder{name}.tsv", "pretrain") for name in ("", "-validation"))
    assert list(curve[0]) == ["step", "loss", "mlm", "learning_rate"]
    assert list(validation[0]) == ["step", "mlm"]


def test_words_that_look_like_special_tokens_are_words(tmp_path: Path) -> None:
    write_pairs(
        "toys", [(f"the [MASK] of {number}", f"mask pad sep [ ] [PAD] or [SEP] {number}") for number in range(60)]
    )
    learner = Pretraining(pretrain_job(tmp_path))
    marks = set(learner.tokenizer.all_special_ids) - {learner.tokenizer.sep_token_id}
    assert not marks & set(learner.reader._training.stream.tokens.tolist())
    unknown = join_texts(Stream(np.full(40, learner.tokenizer.unk_token_id, np.int32), learner.reader.special), 16)
    batch, _, _ = learner.reader.read(unknown, np.arange(2), np.random.default_rng(0), slice(None))
    assert not batch.chosen.any()


SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.mark.parametrize(
    ("model_type", "config"),
    [
        ("roberta", {"max_position_embeddings": 34, "type_vocab_size": 1}),
        ("modernbert", {"max_position_embeddings": 32}),
        ("distilbert", {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}),
    ],
)
def test_any_bert_like_architecture_can_be_trained(tmp_path: Path, model_type, config) -> None:
    config = config if model_type == "distilbert" else SMALL | config
    job = pretrain_job(tmp_path, encoder=ENCODER | {"model_type": model_type, "config": config}, steps=2)
    pretrain(job)
    assert AutoModel.from_pretrained(job.model).config.model_type == model_type


BAD = [
    (
        {"encoder": ENCODER | {"config": ENCODER["config"] | {"hiden_size": 8}}},
        "bert has no setting 'hiden_size'; did you mean 'hidden_size'",
    ),
    ({"encoder": ENCODER | {"model_type": "brt"}}, "transformers has no model type 'brt'"),
    ({"encoder": ENCODER | {"config": {"hidden_size": 10, "num_attention_heads": 3}}}, "this encoder cannot be built"),
    ({"max_length": 64}, "max_length is 64, but the encoder reads only 32 tokens"),
    (
        {"encoder": ENCODER | {"model_type": "roberta", "config": {**SMALL, "max_position_embeddings": 16}}},
        "max_length is 16, but the encoder reads only 15 tokens",
    ),
    (
        {"encoder": ENCODER | {"model_type": "electra", "config": {**SMALL, "embedding_size": 8}}},
        "embeds tokens in 8 dimensions, but its states have 16; head and decoder need",
    ),
    (
        {"encoder": ENCODER | {"config": {**SMALL, "vocab_size": 9}}},
        r"embeds 9 tokens, but its tokenizer has \d+; resize its embeddings, or leave vocab_size out of config",
    ),
    ({"encoder": ENCODER | {"config": {**SMALL, "hidden_size": "abc"}}}, "this encoder cannot be built"),
    ({"encoder": ENCODER | {"config": {**SMALL, "num_attention_heads": 0}}}, "this encoder cannot be built"),
    ({"held_out": 0.03}, r"only \d+ tokens to validate on, fewer than two sequences of 16"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_what_cannot_be_built_is_refused(tmp_path: Path, changes, message) -> None:
    with pytest.raises(InputError, match=message):
        pretrain(pretrain_job(tmp_path, **changes))
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("steps", "validations", "expected"), [(19, 10, 10), (20, 10, 10), (20, 4, 4), (7, 9, 7)])
def test_validations_are_evenly_spaced_and_one_more_comes_first(
    tmp_path: Path, steps: int, validations: int, expected: int
) -> None:
    job = pretrain_job(tmp_path, steps=steps, validations=validations)
    pretrain(job)
    rows = [int(row["step"]) for row in read_tsv(job.results / "seed_encoder-validation.tsv", "pretrain")]
    assert (rows[0], rows[-1], len(rows)) == (0, steps, expected + 1)
    assert np.ptp(np.diff(rows)) == (0 if steps % expected == 0 else 1)


def test_a_window_longer_than_the_text_is_full_attention(tmp_path: Path) -> None:
    gradients = [
        first_gradient(pretrain_job(tmp_path, decoder={"kind": "weak", "layers": 1, "window": window}))
        for window in (100, None)
    ]
    assert torch.equal(*gradients)
