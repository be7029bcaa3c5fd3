"""Training CDE: the gradient, the random draws and the saved folder."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import Tensor
from torch.nn import functional

from batchwright.core.errors import InputError
from batchwright.core.results import read_tsv
from batchwright.formats.shards import ShardSet
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.folder import load_contextual
from tests.tiny_models import word_pieces
from tests.train.toys import describe, retrieve, toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.cde import Params
from trainers.cde.learner import ContextualLearner
from trainers.cde.start import start_from
from trainers.common.batches import BatchReader, TrainBatch
from trainers.common.gradient_cache import CachedForward
from trainers.common.losses import compare
from trainers.common.train_job import TrainJob
from trainers.variants import train

ROWS = 10
STEPS = 120


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    masked = np.eye(ROWS, k=1, dtype=bool)
    return write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(ROWS, seed), masked) for seed in range(STEPS)])


def job_with(folder: Path, shards: Path, dropout: float = 0.0, **options: object) -> TrainJob:
    start = write_toy_model(folder / "start", dropout)
    return toy_job(folder / "job", start, shards, "cde", **{"context_documents": 6, **options})


@pytest.mark.parametrize("documents", [0, 6, 64])
@pytest.mark.parametrize("reads_text", [True, False])
def test_the_gradient_of_any_chunk_size_is_that_of_one_big_batch(
    tmp_path: Path, shards: Path, documents: int, reads_text: bool
) -> None:
    options = {"context_documents": documents, "null_share": 0.3, "context_reads_text": reads_text}
    whole = _plain_gradient(job_with(tmp_path, shards, **options))
    for chunk in (1, 3, 32):
        cached = _gradient(job_with(tmp_path, shards, mini_batch_size=chunk, **options))
        assert torch.cosine_similarity(whole, cached, dim=0) > 0.99999
        assert abs(whole.norm() / cached.norm() - 1) < 1e-4


def test_dropout_is_replayed_chunk_by_chunk(tmp_path: Path, shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_with(tmp_path, shards, dropout=0.3, mini_batch_size=3)
    cached = _gradient(job)
    # The same chunks with the same draws, but all in one graph.
    monkeypatch.setattr(CachedForward, "__init__", _whole_graph)
    monkeypatch.setattr(CachedForward, "backward", lambda self, given: torch.autograd.backward(self.whole, given))
    whole = _gradient(job)
    assert torch.cosine_similarity(whole, cached, dim=0) > 0.99999
    assert abs(whole.norm() / cached.norm() - 1) < 1e-4


def _whole_graph(self, encode, chunks) -> None:  # type: ignore[no-untyped-def]
    self.whole = torch.cat([encode(chunk) for chunk in chunks])
    self.output = self.whole.detach()


def test_each_step_draws_its_own_context_and_always_the_same(tmp_path: Path, shards: Path) -> None:
    seen: list[list[str]] = []
    job = job_with(tmp_path, shards, null_share=0.0, mini_batch_size=32)
    learner = ContextualLearner(job)
    split = learner._split
    learner._split = lambda texts: seen.append(texts) or split(texts)  # type: ignore[func-returns-value,method-assign]
    for index in (0, 1, 0):
        learner.backward(_batch(job, index))
    first, second, again = seen[0::3]
    documents = _batch(job, 0).documents
    assert first == again
    assert len(first) == len(set(first)) == 6 and set(first) < set(documents)
    assert set(second) < set(_batch(job, 1).documents)
    assert first != documents[:6]


def test_training_learns_and_the_folder_retrieves(tmp_path: Path, shards: Path) -> None:
    job = job_with(tmp_path, shards, mini_batch_size=32)
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


def test_the_folder_loads_without_this_project(tmp_path: Path, shards: Path) -> None:
    job = job_with(tmp_path, shards, steps=1)
    train(job)
    script = (
        "import sys, numpy as np\n"
        "from sentence_transformers import SentenceTransformer\n"
        f"model = SentenceTransformer({str(job.model)!r}, trust_remote_code=True, device='cpu')\n"
        "model[0].fit_context(['w1 w2', 'w3', 'w4 w5'])\n"
        f"np.save({str(tmp_path / 'vectors.npy')!r}, model.encode_query(['w1', 'w2 w3']))\n"
        f"model.save({str(tmp_path / 'index')!r})\n"
        f"again = SentenceTransformer({str(tmp_path / 'index')!r}, trust_remote_code=True, device='cpu')\n"
        "assert np.array_equal(again.encode_query(['w1', 'w2 w3']), model.encode_query(['w1', 'w2 w3']))\n"
        "assert 'trainers' not in sys.modules and 'batchwright' not in sys.modules\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home"), "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
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
    static = SentenceTransformer(modules=[StaticEmbedding(word_pieces(), embedding_dim=8)], device="cpu")
    static.save(str(tmp_path / "static"), create_model_card=False)
    with pytest.raises(InputError, match="begins with StaticEmbedding; CDE needs a transformer"):
        start_from(
            tmp_path / "static",
            Params(temperature=0.1, context_documents=2),
            ModelInfo(variant="biencoder", max_length=16),
        )
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
    learner = ContextualLearner(job)
    learner.model.train()
    torch.manual_seed(5)
    learner.backward(_batch(job, 2))
    return _flat(learner)


def _plain_gradient(job: TrainJob) -> Tensor:
    """By definition: one graph from the texts to the loss, with the learner's draws."""
    learner, batch = ContextualLearner(job), _batch(job, 2)
    learner.model.train()
    encoder, documents = learner.encoder, learner.encoder.documents
    rng = np.random.default_rng([job.seed, 2])
    chosen = rng.permutation(ROWS)[:documents]
    null = torch.from_numpy(rng.random(len(chosen)) < 0.3)
    context = None
    if documents:
        context = encoder.embed_context(encoder.preprocess([batch.documents[row] for row in chosen]))
    prepared = encoder.prepare(context, null)
    queries, texts = (
        functional.normalize(encoder.read(encoder.preprocess(side), prepared), dim=-1)
        for side in (batch.queries, batch.documents)
    )
    none = texts.new_zeros(ROWS, 0, texts.shape[1])
    masked = torch.from_numpy(batch.masked)
    compare(queries, texts, masked, none, torch.zeros(ROWS, 0, dtype=torch.bool), 0.1).loss.backward()
    return _flat(learner)


def _flat(learner: ContextualLearner) -> Tensor:
    return torch.cat(
        [(torch.zeros_like(each) if each.grad is None else each.grad).flatten() for each in learner.model.parameters()]
    )
