"""The biencoder's gradient, with masks and hard negatives, against the formula in one autograd graph."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader, TrainBatch
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.biencoder import build_learner
from trainers.common.sentence_learner import SentenceLearner, embed

TEMPERATURE = 0.1


@pytest.mark.parametrize("hard_negatives", [0, 2])
def test_backward_computes_the_gradient_of_the_formula(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard_negatives: int
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    rows = [row | {"negatives": [f"w{n} w{place}" for place in range(n % 4)]} for n, row in enumerate(toy_rows(6))]
    masked = np.random.default_rng(0).random((6, 6)) < 0.4
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(rows, masked)])
    start = write_toy_model(tmp_path / "start", dropout=0.0)
    job = toy_job(tmp_path, start, shards, mini_batch_size=2, temperature=TEMPERATURE, hard_negatives=hard_negatives)
    batch = BatchReader(ShardSet.open(shards), job.info.prefixes, hard_negatives).read(0, slice(None))
    learner = build_learner(job)

    loss = _formula(learner, batch)
    loss.backward()
    expected = _take_gradient(learner)
    outcome = learner.backward(learner.prepare(batch))
    found = _take_gradient(learner)
    assert float(outcome.loss) == pytest.approx(loss.item(), rel=1e-5)
    assert torch.cosine_similarity(found, expected, dim=0) > 0.99999
    assert abs(found.norm() / expected.norm() - 1) < 1e-4


def _formula(learner: SentenceLearner, batch: TrainBatch) -> Tensor:
    queries, documents = (_embed(learner, texts) for texts in (batch.queries, batch.documents))
    negatives = iter(_embed(learner, batch.negatives) if batch.negatives else [])
    losses = []
    for row, query in enumerate(queries):
        scores = [query @ documents[row]]
        scores += [query @ document for j, document in enumerate(documents) if j != row and not batch.masked[row, j]]
        scores += [query @ next(negatives) for _ in range(batch.negative_counts[row])]
        losses.append(-torch.log_softmax(torch.stack(scores) / TEMPERATURE, dim=0)[0])
    return torch.stack(losses).mean()


def _embed(learner: SentenceLearner, texts: list[str]) -> Tensor:
    return embed(learner.model, learner.model.preprocess(texts))


def _take_gradient(learner: SentenceLearner) -> Tensor:
    flat = torch.cat([each.grad.flatten() for each in learner.model.parameters() if each.grad is not None])
    learner.model.zero_grad()
    return flat
