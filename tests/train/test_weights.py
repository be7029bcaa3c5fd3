"""A pair's weight multiplies its term in the loss, and so its gradient."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader
from batchwright.training.losses import Distill, Objective, Terms, Vectors, hinge, info_nce
from tests.train.test_loss import ALL, random_case
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from trainers.variants import build_learner

WEIGHTS = np.array([0.5, 3, 1, 1e-3, 7, 1], np.float32)


@pytest.mark.parametrize(
    "objective",
    [
        info_nce,
        partial(info_nce, terms=Terms(directions=ALL, hardness_strength=5)),
        partial(info_nce, terms=Terms(directions=ALL[:2], partition_mode="per_direction")),
        partial(info_nce, distill=Distill(loss="kl", weight=0.5)),
        partial(info_nce, distill=Distill(loss="margin_mse", weight=None)),
        partial(hinge, margin=0.5),
    ],
)
def test_a_weight_multiplies_the_term_of_its_row(objective: Objective) -> None:
    queries, documents, masked, negatives, absent = random_case(4, 6, 2)
    scores, own = queries @ documents.T / 0.1, torch.einsum("bd,bkd->bk", queries, negatives) / 0.1
    taught = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    given = scores, masked, own.masked_fill(absent, -torch.inf), None, Vectors(queries, documents, 0.1), taught

    def loss(weights: Tensor | None) -> float:
        return objective(*given, weights=weights).loss.item()

    terms = [loss(row) for row in torch.eye(6, dtype=torch.float64)]
    assert sum(terms) == pytest.approx(loss(None), rel=1e-9)
    assert loss(torch.from_numpy(WEIGHTS).double()) == pytest.approx(np.dot(WEIGHTS, terms), rel=1e-6)
    if objective is info_nce:
        compared = scores.masked_fill(masked & ~torch.eye(6, dtype=torch.bool), -torch.inf)
        whole = torch.cat([compared, given[2]], dim=1).log_softmax(dim=1)
        assert terms == pytest.approx((-whole.diagonal() / 6).tolist(), rel=1e-9)


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        ("biencoder", {"dimensions": {4: 0.5, 16: 1}}),
        ("seed_encoder", {"loss": "hinge"}),
        ("cde", {"context_documents": 4, "context_dropout": 0}),
        ("xtr", {"k": 9}),
        ("xtr", {"score": "colbert"}),
    ],
)
def test_every_variant_weighs_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str, options: dict[str, object]
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    rows = [row | {"weight": weight, "metadata": "{}"} for row, weight in zip(toy_rows(6), WEIGHTS, strict=True)]
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(rows), toy_batch([row | {"weight": 1} for row in rows])])
    start = write_toy_model(tmp_path / "start", dropout=0.0)
    job = toy_job(tmp_path, start, shards, variant, mini_batch_size=4, **options)
    reader = BatchReader(ShardSet.open(shards), job.info.prefixes, 0)
    weighted, plain = reader.read(0, slice(None)), reader.read(1, slice(None))
    assert weighted.weights is not None and weighted.weights.tolist() == WEIGHTS.tolist()
    assert plain.weights is None
    learner = build_learner(job)

    def train(weights: NDArray[np.float32] | None) -> tuple[float, Tensor]:
        learner.model.zero_grad()
        outcome = learner.backward(learner.prepare(replace(weighted, weights=weights)))
        return float(outcome.loss), torch.cat(
            [p.grad.flatten() for p in learner.model.parameters() if p.grad is not None]
        )

    (loss, gradient), *parts = train(weighted.weights), *(train(row) for row in np.eye(6, dtype=np.float32))
    assert loss == pytest.approx(sum(w * part for w, (part, _) in zip(WEIGHTS, parts, strict=True)), rel=1e-4)
    expected = sum(w * part for w, (_, part) in zip(WEIGHTS.tolist(), parts, strict=True))
    assert isinstance(expected, Tensor)
    assert torch.cosine_similarity(gradient, expected, dim=0) > 0.9999
    assert train(None)[0] == pytest.approx(sum(part for part, _ in parts), rel=1e-4)
