"""The masked loss of token vectors is that of our XTR trainer, with all tokens retrieved."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.multi_vector_encoder import MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments

from batchwright.core.errors import InputError
from batchwright.training.batches import BatchReader
from batchwright.training.sentence_transformers import (
    CachedMaskedMultiVectorMultipleNegativesRankingLoss,
    MaskedMultiVectorMultipleNegativesRankingLoss,
    shard_dataset,
    training_arguments,
)
from tests.train.toys import toy_job, write_toy_model
from tests.training.toys import write_shards
from trainers.xtr.learner import TokenLearner

TEMPERATURE = 0.1


@pytest.mark.parametrize(
    "build", [MaskedMultiVectorMultipleNegativesRankingLoss, CachedMaskedMultiVectorMultipleNegativesRankingLoss]
)
def test_loss_and_gradient_are_those_of_our_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Any
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    shards = write_shards(tmp_path / "shards", batches=1, scored=True)
    start = write_toy_model(tmp_path / "start", dropout=0.0, layers=1)
    for options in ({}, {"in_batch": False}, {"distill": {"temperature": 2}}):
        own = {"hard_negatives": 2, "temperature": TEMPERATURE, "score": "colbert", **options}
        job = toy_job(tmp_path / "job", start, shards.folder, "xtr", **own)
        learner = TokenLearner(job)
        reader = BatchReader(shards, job.info.prefixes, 2, in_batch=job.common.in_batch, taught="distill" in options)
        model = deepcopy(learner.model)
        ours = learner.backward(learner.prepare(reader.read(0, slice(None))))
        sized = {} if build is MaskedMultiVectorMultipleNegativesRankingLoss else {"mini_batch_size": 3}
        theirs = MultiVectorEncoderTrainer(
            model,
            MultiVectorEncoderTrainingArguments(
                str(tmp_path / "out"), report_to="none", use_cpu=True, **training_arguments(shards)
            ),
            shard_dataset(shards, 2),
            loss=build(model, 1 / TEMPERATURE, **sized, **options),
        )
        found = theirs.compute_loss(model, next(iter(theirs.get_train_dataloader())))
        found.backward()
        assert found.item() == pytest.approx(float(ours.loss), abs=1e-5), options
        torch.testing.assert_close(_gradient(model), _gradient(learner.model), rtol=1e-3, atol=1e-5)


def test_options_that_need_a_vector_for_each_text_are_refused(tmp_path: Path) -> None:
    model = MultiVectorEncoder(str(write_toy_model(tmp_path / "start", layers=1)), device="cpu")
    for option in ({"directions": ["query_to_document", "document_to_query"]}, {"hardness_strength": 5}):
        with pytest.raises(InputError, match=f"{next(iter(option))} needs a vector for each text"):
            MaskedMultiVectorMultipleNegativesRankingLoss(model, **option)


def _gradient(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])
