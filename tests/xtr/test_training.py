"""Training XTR: the gradient and the saved folder."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import Tensor
from transformers import ModernBertConfig, ModernBertModel

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from batchwright.formats.shards import ShardSet
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.xtr.model import encode_tokens
from batchwright.training.batches import BatchReader, TrainBatch
from benchmarks.xtr import dense
from tests.tiny_models import VOCABULARY, WIDTH, _save, save_bert, save_t5, word_pieces
from tests.train.toys import retrieve, toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.common.job import TrainJob
from trainers.common.passes import seed_start
from trainers.variants import train
from trainers.xtr.learner import TokenLearner
from trainers.xtr.scores import Tokens
from trainers.xtr.start import start_from

ROWS = 8
STEPS = 60
TEMPERATURE = 0.1
PLAIN = ModelInfo(variant="biencoder", max_length=16)
TRAINED = ModelInfo(variant="xtr", max_length=16)


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    masked = np.eye(ROWS, k=1, dtype=bool)
    batches = []
    for seed in range(STEPS):
        rows = toy_rows(ROWS, seed)
        for number, row in enumerate(rows):
            row["negatives"] = [" ".join(f"w{number + place}" for place in range(n + 1)) for n in range(number % 3)]
        batches.append(toy_batch(rows, masked))
    return write_toy_shards(tmp_path / "shards", batches)


def job_with(folder: Path, shards: Path, dropout: float = 0.0, **options: object) -> TrainJob:
    start = write_toy_model(folder / "start", dropout)
    return toy_job(folder / "job", start, shards, "xtr", **{"k": 9, "temperature": TEMPERATURE, **options})


@pytest.mark.parametrize("hard_negatives", [0, 2])
@pytest.mark.parametrize("options", [{"k": 9}, {"score": "colbert"}, {"k": 10_000}])
def test_the_gradient_of_any_chunk_size_is_that_of_one_big_batch(
    tmp_path: Path, shards: Path, hard_negatives: int, options: dict[str, object]
) -> None:
    job = job_with(tmp_path, shards, hard_negatives=hard_negatives, **options)
    k = None if options.get("score") else int(str(options["k"]))
    loss, whole = _plain(job, lambda queries, documents: dense(queries, documents, k))
    for chunk in (1, 3, 32):
        learner = _learner(job_with(tmp_path, shards, mini_batch_size=chunk, hard_negatives=hard_negatives, **options))
        outcome = learner.backward(learner.prepare(_batch(job)))
        assert float(outcome.loss) == pytest.approx(loss, rel=1e-5)
        _assert_same(_flat(learner), whole)


def test_separate_pools_for_two_workers_would_change_the_gradient(tmp_path: Path, shards: Path) -> None:
    """What two processes would compute if each retrieved only from its own documents."""
    job = job_with(tmp_path, shards)

    def split(queries: Tokens, documents: Tokens) -> Tensor:
        halves = [dense(queries, Tokens(*(part[rank::2] for part in documents)), 9) for rank in (0, 1)]
        return torch.stack(halves, dim=2).flatten(1)

    _, whole = _plain(job, lambda queries, documents: dense(queries, documents, 9))
    _, apart = _plain(job, split)
    assert torch.cosine_similarity(whole, apart, dim=0) < 0.98


def test_training_learns_and_reports_what_was_retrieved(tmp_path: Path, shards: Path) -> None:
    job = job_with(tmp_path, shards, mini_batch_size=32, learning_rate=1e-3)
    train(job)
    curve = read_tsv(job.curve, made_by="train")
    losses = [float(row["loss"]) for row in curve]
    assert np.mean(losses[-10:]) < np.mean(losses[:5]) - 0.3
    for row in curve:
        assert 0 <= float(row["missed_positives"]) < 1
        assert 0 < float(row["z"]) <= 2  # two words; CLS and SEP do not count
    rows = toy_rows(40, 99)
    queries, documents = ([str(row[side]) for row in rows] for side in ("query", "document"))
    found = retrieve(job.model, queries, documents, 1, 16)[0][:, 0]
    assert (found == np.arange(40)).mean() > 4 / 40


def test_the_folder_loads_without_this_project(tmp_path: Path, shards: Path, warm: Path) -> None:
    job = job_with(tmp_path, shards, steps=1, prefixes={"default": {"query": "query: ", "document": "document: "}})
    train(job)
    script = (
        "import sys, numpy as np\n"
        "from sentence_transformers import MultiVectorEncoder\n"
        f"model = MultiVectorEncoder({str(job.model)!r}, device='cpu')\n"
        "print([type(module).__name__ for module in model])\n"
        f"np.save({str(tmp_path / 'vectors.npy')!r}, model.encode_query('w1 w2', convert_to_numpy=True))\n"
        "documents = model.encode_document(['w1 w2', 'w3', ''])\n"
        "found = model.similarity(model.encode_query(['w1 w2']), documents)\n"
        "assert [len(each) for each in documents] == [3, 2, 1]  # the prefix is a token\n"
        "assert found.isfinite().all() and found.argmax() == 0\n"
        "assert 'trainers' not in sys.modules and 'batchwright' not in sys.modules\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home"), "PYTHONPATH": ""}
    done = subprocess.run(
        [warm / "python", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['Transformer', 'MultiVectorMask', 'Normalize']\n"
    here = MultiVectorEncoder(str(job.model), device="cpu").encode("query: w1 w2", convert_to_numpy=True)
    vectors = np.load(tmp_path / "vectors.npy")
    assert vectors.shape == (3, WIDTH) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(vectors, here, atol=1e-6)
    assert list(job.model.rglob("*.safetensors")) and not list(job.model.rglob("*.bin"))


def test_the_card_names_batches_and_score(tmp_path: Path, shards: Path) -> None:
    job = job_with(tmp_path, shards, steps=1)
    train(job)
    card = (job.model / "README.md").read_text()
    assert "contextual, 8 pairs each" in card and "score: xtr" in card and "$" not in card
    texts = b"".join(file.read_bytes() for file in job.model.rglob("*") if file.is_file())
    assert str(tmp_path).encode() not in texts


def save_modernbert(folder: Path) -> Path:
    config = ModernBertConfig(
        vocab_size=len(VOCABULARY), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3,
    )  # fmt: skip
    torch.manual_seed(0)
    return _save(folder, ModernBertModel(config), word_pieces())


@pytest.mark.parametrize("save", [save_bert, save_t5, save_modernbert])
def test_encoders_of_all_kinds_train_and_open_again(tmp_path: Path, shards: Path, save: Callable[[Path], Path]) -> None:
    start = save(tmp_path / "made")
    job = toy_job(tmp_path / "job", start, shards, "xtr", k=9, steps=2)
    train(job)
    before, after = (start_from(folder, ModelInfo.read(folder), "cpu") for folder in (start, job.model))
    found = after.encode(["one two", "three"], convert_to_numpy=True)
    assert [each.shape[1] for each in found] == [WIDTH, WIDTH]
    assert before[0].model.config.model_type == after[0].model.config.model_type
    indices, _ = retrieve(job.model, ["one"], ["one", "two three"], 2, 16)
    assert sorted(indices[0]) == [0, 1]


def test_bad_start_models_are_refused(tmp_path: Path, shards: Path) -> None:
    static = SentenceTransformer(modules=[StaticEmbedding(word_pieces(), embedding_dim=8)], device="cpu")
    static.save(str(tmp_path / "static"), create_model_card=False)
    with pytest.raises(InputError, match="begins with StaticEmbedding; XTR needs a transformer"):
        start_from(tmp_path / "static", PLAIN, "cpu")
    with pytest.raises(InputError, match="reads 32 tokens; lower max_length from 33"):
        TokenLearner(job_with(tmp_path, shards, max_length=33))
    job = job_with(tmp_path, shards, steps=1, width=8)
    train(job)
    with pytest.raises(InputError, match="reads 32 tokens; lower max_length from 33"):
        start_from(job.model, TRAINED.model_copy(update={"max_length": 33}), "cpu")
    (job.model / "model.safetensors").write_bytes(b"cut off")
    with pytest.raises(InputError, match=r"cannot be loaded|damaged"):
        start_from(job.model, TRAINED, "cpu")
    (job.model / "1_Dense" / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"cannot be loaded|damaged"):
        retrieve(job.model, ["w1"], ["w2"], 1, 16)
    (job.model / "config_sentence_transformers.json").write_text("{")
    with pytest.raises(InputError, match=r"cannot be loaded|damaged"):
        retrieve(job.model, ["w1"], ["w2"], 1, 16)


def test_max_length_overrides_the_start_models_own_limits(tmp_path: Path) -> None:
    own = start_from(save_bert(tmp_path / "made"), PLAIN, "cpu")
    own[0].query_length, own[0].document_length = 4, 5
    own.save(str(tmp_path / "start"), create_model_card=False)
    model = start_from(tmp_path / "start", TRAINED.model_copy(update={"max_length": 7}), "cpu")
    long = "one two three four five six seven eight nine"
    lengths = [encode_tokens(model, [long], side).lengths.tolist() for side in ("query", "document")]
    assert lengths == [[5], [5]]  # and CLS and SEP


def _batch(job: TrainJob) -> TrainBatch:
    reader = BatchReader(ShardSet.open(job.shards), job.info.prefixes, job.common.hard_negatives)
    return reader.read(2, slice(0, ROWS))


def _learner(job: TrainJob) -> TokenLearner:
    seed_start(job.seed)
    return TokenLearner(job)


def _plain(job: TrainJob, scores: Callable[[Tokens, Tokens], Tensor]) -> tuple[float, Tensor]:
    """By definition: one graph from the texts to the loss, row by row; every token is in every row's pool."""
    learner, batch = _learner(job), _batch(job)
    queries, documents = (_embed(learner, texts) for texts in (batch.queries, batch.documents + batch.negatives))
    found = scores(queries, documents) / TEMPERATURE
    losses, first = [], ROWS
    for row in range(ROWS):
        own = list(range(first, first + int(batch.negative_counts[row])))
        first += len(own)
        others = [j for j in range(ROWS) if j != row and not batch.masked[row, j]]
        losses.append(-torch.log_softmax(found[row, [row, *others, *own]], dim=0)[0])
    loss = torch.stack(losses).mean()
    loss.backward()
    return loss.item(), _flat(learner)


def _embed(learner: TokenLearner, texts: list[str]) -> Tokens:
    output = learner.model(learner.model.preprocess(texts))
    return Tokens(output["token_embeddings"], output["attention_mask"].bool().numpy())


def _assert_same(found: Tensor, expected: Tensor) -> None:
    assert torch.cosine_similarity(found, expected, dim=0) > 0.99999
    assert abs(found.norm() / expected.norm() - 1) < 1e-4


def _flat(learner: TokenLearner) -> Tensor:
    return torch.cat([each.grad.flatten() for each in learner.model.parameters() if each.grad is not None])
