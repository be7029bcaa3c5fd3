"""Training CDE: the gradient, the random draws and the saved folder."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from batchwright.formats.shards import ShardSet
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.retriever import load_contextual
from batchwright.training.batches import BatchReader, TrainBatch
from batchwright.training.losses import compare
from tests.cde.encoders import FORMS
from tests.train.toys import describe, retrieve, toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.cde.learner import ContextualLearner
from trainers.common import gradient_cache
from trainers.common.job import TrainJob
from trainers.variants import load_variant, train

ROWS = 10
STEPS = 120


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    masked = np.eye(ROWS, k=1, dtype=bool)
    return write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(ROWS, seed), masked) for seed in range(STEPS)])


def job_with(folder: Path, shards: Path, **options: object) -> TrainJob:
    start = write_toy_model(folder / "start", dropout=0.0)
    return toy_job(folder / "job", start, shards, "cde", **{"context_documents": 6, **options})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("documents", "first_stage"), [(0, "separate"), (6, "separate"), (64, "separate"), (6, "shared")]
)
def test_the_gradient_of_any_chunk_size_is_that_of_one_big_batch(
    tmp_path: Path, shards: Path, form: str, documents: int, first_stage: str
) -> None:
    own = {"null_share": 0.4} if form == "sequence" else {}
    options = {"context": form, "context_documents": documents, "first_stage": first_stage, "context_dropout": 0, **own}
    whole = _plain_gradient(job_with(tmp_path, shards, **options))
    for chunk in (1, 3, 32):
        assert_close(_gradient(job_with(tmp_path, shards, mini_batch_size=chunk, **options)), whole)


def test_a_step_without_context_trains_the_null_vector_of_a_sequence(tmp_path: Path, shards: Path) -> None:
    job = job_with(tmp_path, shards, context="sequence", context_dropout=1)
    learner = _open(job)
    learner.backward(learner.prepare(_batch(job, 2)))
    found = _flat(learner)
    learner.model.zero_grad()
    batch = _batch(job, 2)
    learner.encoder.clear_context()
    _contrast(learner, batch, None)
    assert_close(found, _flat(learner))
    assert learner.encoder.null.grad is not None and learner.encoder.null.grad.norm() > 0


def test_a_share_of_a_sequences_context_is_null(tmp_path: Path, shards: Path) -> None:
    learner = ContextualLearner(job_with(tmp_path, shards, context="sequence", null_share=0.3, context_dropout=0))
    drawn = [learner.prepare(_batch(learner._job, index))[1] for index in range(60)]
    shares = np.array([each.null for each in drawn if each])
    assert shares.shape == (60, 6)
    assert abs(shares.mean() - 0.3) < 0.1 and shares.mean(axis=1).std() > 0.1, "vector by vector"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("first_stage", ["separate", "shared"])
def test_the_gradient_of_the_first_stage_can_be_left_out(
    tmp_path: Path, shards: Path, form: str, first_stage: str
) -> None:
    options = {"context": form, "first_stage": first_stage, "context_dropout": 0, "mini_batch_size": 3}
    whole, job = (job_with(tmp_path, shards, **options, first_stage_gradient=each) for each in (True, False))
    learner = _open(job)
    learner.backward(learner.prepare(_batch(job, 2)))
    if first_stage == "separate":
        assert all(each.grad is None for each in learner.encoder.first.parameters())
        kept = _flat(learner) != 0
        assert_close(_flat(learner)[kept], _gradient(whole)[kept])
    else:
        expected = _gradient(whole)
        assert (_flat(learner) - expected).norm() > 1e-4 * expected.norm()
    assert not learner._passes.memory._graphs


def test_texts_of_a_sequence_count_with_their_context_and_stay_padded(
    tmp_path: Path, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_cache, "gains_by_packing", lambda _: True)
    job = job_with(tmp_path, shards, context="sequence", context_documents=20, mini_batch_size=3, context_dropout=0)
    learner = ContextualLearner(job)
    (_, queries, documents), chosen = learner.prepare(_batch(job, 0))
    assert learner._passes.cut.tokens == 3 * (16 + 20)
    for group in [*queries, *documents]:
        assert group.packing is None
        assert group.tokens == (group.lengths.max() + 20) * len(group.places) <= 3 * 36  # type: ignore[union-attr]
    assert sum(group.tokens for group in chosen.groups) == 10 * 5, "stage 1 reads texts alone"


def test_new_parts_are_the_gates_unless_the_start_model_has_them(tmp_path: Path, shards: Path) -> None:
    job = job_with(tmp_path, shards, steps=1, new_learning_rate=0.5, warmup_ratio=0.0, context_dropout=0)
    learner = ContextualLearner(job)
    assert [each is learner.encoder.gate for each in learner.fresh] == [True]
    train(job)
    gate = load_contextual(job.model)[0].gate
    torch.testing.assert_close(gate.abs(), torch.full_like(gate, 0.5), rtol=1e-2, atol=0)
    assert ContextualLearner(toy_job(tmp_path / "next", job.model, shards, "cde", context_documents=6)).fresh == []


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_steps_trains_without_context(tmp_path: Path, shards: Path, share: float) -> None:
    learner = ContextualLearner(job_with(tmp_path, shards, context_dropout=share, mini_batch_size=32))
    with_context = []
    for index in range(40):
        learner.model.zero_grad(set_to_none=True)
        learner.backward(learner.prepare(_batch(learner._job, index)))
        with_context.append(learner.encoder.gate.grad is not None)
    assert abs(1 - np.mean(with_context) - share) < (0.2 if share == 0.5 else 1e-9)


def test_a_step_without_context_is_the_biencoders(tmp_path: Path, shards: Path) -> None:
    job = job_with(tmp_path, shards, context_dropout=1)
    learner = ContextualLearner(job)
    learner.encoder.gate.data.fill_(1.0)
    plain = load_variant("biencoder").build_learner(toy_job(tmp_path / "plain", job.start_model, shards))
    for each in (learner, plain):
        each.model.eval()
        each.backward(each.prepare(_batch(job, 2)))
    ours = {name.removeprefix("0.second."): each.grad for name, each in learner.model.named_parameters()}
    for name, each in plain.model.named_parameters():
        torch.testing.assert_close(ours[name], each.grad)


def test_each_step_draws_its_own_context_and_always_the_same(tmp_path: Path, shards: Path) -> None:
    seen: list[list[str]] = []
    job = job_with(tmp_path, shards, context_dropout=0, mini_batch_size=32)
    learner = ContextualLearner(job)
    read = learner._tokenise_context
    learner._tokenise_context = lambda texts, **_: seen.append(texts) or read(texts)  # type: ignore[func-returns-value,assignment,misc]
    for index in (0, 1, 0):
        learner.backward(learner.prepare(_batch(job, index)))
    first, second, again = seen
    documents = _batch(job, 0).documents
    assert first == again
    assert len(first) == len(set(first)) == 6 and set(first) < set(documents)
    assert set(second) < set(_batch(job, 1).documents)
    assert first != documents[:6]


@pytest.mark.parametrize("form", FORMS)
def test_training_learns_and_the_folder_retrieves(tmp_path: Path, shards: Path, form: str) -> None:
    job = job_with(tmp_path, shards, mini_batch_size=32, context=form)
    train(job)
    losses = [float(row["loss"]) for row in read_tsv(job.curve, made_by="train")]
    assert np.mean(losses[-10:]) < np.mean(losses[:5]) - 0.3
    rows = toy_rows(40, 99)
    queries, documents = ([str(row[side]) for row in rows] for side in ("query", "document"))
    trained, again, start = (
        retrieve(model, queries, documents, 1, 16)[0][:, 0] for model in (job.model, job.model, job.start_model)
    )
    assert np.array_equal(trained, again)
    assert (trained == np.arange(40)).mean() > (start == np.arange(40)).mean() + 0.1


@pytest.mark.parametrize("form", FORMS)
def test_the_folder_loads_without_this_project(tmp_path: Path, shards: Path, warm: Path, form: str) -> None:
    job = job_with(tmp_path, shards, steps=1, context_dropout=0, context=form)
    train(job)
    script = (
        "import sys, numpy as np\n"
        "from sentence_transformers import SentenceTransformer\n"
        f"model = SentenceTransformer({str(job.model)!r}, trust_remote_code=True, device='cpu')\n"
        "model[0].fit_context(['w1 w2', 'w3', 'w4 w5'])\n"
        f"np.save({str(tmp_path / 'vectors.npy')!r}, model.encode_query(['w1', 'w2 w3']))\n"
        f"model.save({str(tmp_path / 'index')!r})\n"
        f"again = SentenceTransformer({str(tmp_path / 'index')!r}, trust_remote_code=True, device='cpu')\n"
        "assert np.allclose(again.encode_query(['w1', 'w2 w3']), model.encode_query(['w1', 'w2 w3']), atol=1e-6)\n"
        "assert 'trainers' not in sys.modules and 'batchwright' not in sys.modules\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home"), "PYTHONPATH": ""}
    done = subprocess.run(
        [warm / "python", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    model = load_contextual(job.model)
    encoder = model[0]
    assert isinstance(encoder, ContextualEncoder)
    encoder.fit_context(["w1 w2", "w3", "w4 w5"])
    assert np.allclose(np.load(tmp_path / "vectors.npy"), model.encode_query(["w1", "w2 w3"]), atol=1e-5)


def test_the_card_names_the_batches(tmp_path: Path, shards: Path) -> None:
    job = job_with(tmp_path, shards, steps=1)
    train(job)
    card = (job.model / "README.md").read_text()
    assert "contextual, 10 pairs each" in card and "fit_context" in card and "$" not in card


def test_bad_start_models_are_refused(tmp_path: Path, shards: Path) -> None:
    with pytest.raises(InputError, match="reads 32 tokens; lower max_length from 33"):
        ContextualLearner(job_with(tmp_path, shards, max_length=33))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "contextual_encoder.json").write_text("{}")
    describe(tmp_path / "broken")
    with pytest.raises(InputError, match="broken': cannot be loaded"):
        retrieve(tmp_path / "broken", ["w1"], ["w2"], 1, 16)


def _batch(job: TrainJob, index: int) -> TrainBatch:
    reader = BatchReader(ShardSet.open(job.shards), job.info.prefixes, job.common.hard_negatives)
    return reader.read(index, slice(0, ROWS))


def _gradient(job: TrainJob) -> Tensor:
    learner = _open(job)
    learner.backward(learner.prepare(_batch(job, 2)))
    return _flat(learner)


def _open(job: TrainJob) -> ContextualLearner:
    """A learner with open gates: while they are shut, stage 1 has no gradient."""
    learner = ContextualLearner(job)
    learner.model.train()
    torch.manual_seed(5)
    for each in learner.fresh:
        each.data.normal_()
    return learner


def _plain_gradient(job: TrainJob) -> Tensor:
    """By definition: one graph from the texts to the loss, with the learner's draws."""
    learner, batch = _open(job), _batch(job, 2)
    encoder, documents = learner.encoder, learner.encoder.documents
    rng = np.random.default_rng([job.seed, 2])
    rng.random()
    chosen = rng.permutation(ROWS)[:documents]
    prepared = None
    if documents:
        texts = [batch.documents[row] for row in chosen]
        vectors = encoder.embed_context(encoder.first.preprocess(texts))
        if encoder.form == "sequence":
            null = torch.from_numpy(rng.random(len(chosen)) < 0.4)
            assert null.any() and not null.all()
            vectors = torch.stack([encoder.null if drop else row for row, drop in zip(vectors, null, strict=True)])
        prepared = encoder.prepare(vectors)
    _contrast(learner, batch, prepared)
    return _flat(learner)


def _contrast(learner: ContextualLearner, batch: TrainBatch, prepared: Tensor | None) -> None:
    encoder = learner.encoder
    queries, texts = (
        functional.normalize(encoder({**encoder.preprocess(side), "context": prepared})["sentence_embedding"], dim=-1)
        for side in (batch.queries, batch.documents)
    )
    none = texts.new_zeros(ROWS, 0, texts.shape[1])
    masked = torch.from_numpy(batch.masked)
    compare(queries, texts, masked, none, torch.zeros(ROWS, 0, dtype=torch.bool), 0.1).loss.backward()


def assert_close(found: Tensor, expected: Tensor) -> None:
    assert torch.cosine_similarity(found, expected, dim=0) > 0.99999
    assert abs(found.norm() / expected.norm() - 1) < 1e-4


def _flat(learner: ContextualLearner) -> Tensor:
    return torch.cat(
        [(torch.zeros_like(each) if each.grad is None else each.grad).flatten() for each in learner.model.parameters()]
    )
