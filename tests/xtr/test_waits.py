"""A step's scores, loss and gradient do nothing for which the host would wait for a GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from batchwright.formats.shards import ShardSet
from batchwright.training.batches import BatchReader, TrainBatch
from tests.train.toys import toy_batch, toy_job, toy_rows, write_toy_model, write_toy_shards
from tests.xtr.reference import random_tokens
from trainers.xtr import learner
from trainers.xtr.learner import TASKS, TokenLearner, embed_tokens
from trainers.xtr.scores import Tokens, score

READS = {"_local_scalar_dense", "is_nonzero", "item", "equal"}
SHAPED_BY_VALUES = {"nonzero", "masked_select", "bincount", "unique", "_unique2", "unique_consecutive"}


class NoWait(TorchDispatchMode):
    """Refuses whatever reads a tensor's values on the host, or makes a tensor whose shape depends on them."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, overload = func.__name__.split(".")
        assert name not in READS | SHAPED_BY_VALUES, func
        assert (name, overload) != ("repeat_interleave", "Tensor") or (kwargs or {}).get("output_size"), func
        if name.startswith("index"):
            places = [each for part in args if isinstance(part, (list, tuple)) for each in part]
            assert all(each.dtype not in (torch.bool, torch.uint8) for each in places if isinstance(each, Tensor)), func
        return func(*args, **(kwargs or {}))


def refuse_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse copies to the host, which are no operations on a CPU."""
    for name in ("cpu", "numpy", "tolist"):
        monkeypatch.setattr(Tensor, name, None)


def waits(run: Any) -> bool:
    try:
        with NoWait():
            run()
    except AssertionError:
        return True
    return False


def test_reading_a_value_is_noticed() -> None:
    some = torch.arange(3)
    for run in (
        lambda: int(some.sum()),
        lambda: some[some > 1],
        lambda: bool((some > 1).any()),
        lambda: some.repeat_interleave(some),
        lambda: torch.bincount(some),
    ):
        assert waits(run)
    assert not waits(lambda: some[some.flip(0)])


@pytest.mark.parametrize("k", [None, 7])
def test_scores_and_their_gradient_do_not_wait(monkeypatch: pytest.MonkeyPatch, k: int | None) -> None:
    generator = torch.Generator().manual_seed(0)
    queries, documents = (random_tokens(generator, 5, 6) for _ in range(2))
    refuse_copies(monkeypatch)
    leaves = [each.vectors.requires_grad_() for each in (queries, documents)]
    with NoWait():
        values = score(Tokens(leaves[0], queries.mask), Tokens(leaves[1], documents.mask), k, elements=100).values
        values.sum().backward()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


def toy_learner(tmp_path: Path, negatives: int) -> tuple[TokenLearner, TrainBatch]:
    rows = toy_rows(8)
    for number, row in enumerate(rows):
        row["negatives"] = [f"w{number} w3"] * (number % 3)
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(rows)])
    prefixes = {"default": {"query": "w1 ", "document": "w2 "}}
    job = toy_job(
        tmp_path / "job", write_toy_model(tmp_path / "start"), shards, "xtr", k=9, hard_negatives=2, prefixes=prefixes
    )
    trained = TokenLearner(job)
    return trained, BatchReader(ShardSet.open(shards), job.info.prefixes, negatives).read(0, slice(0, 8))


@pytest.mark.parametrize("negatives", [0, 2])
def test_only_the_encoder_may_wait_in_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, negatives: int) -> None:
    trained, batch = toy_learner(tmp_path, negatives)
    prepared = trained.prepare(batch)

    def embed(*given: Any) -> Tensor:
        with _disable_current_modes():
            return embed_tokens(*given)

    monkeypatch.setattr(learner, "embed_tokens", embed)
    refuse_copies(monkeypatch)
    with NoWait():
        outcome = trained.backward(prepared)
    assert outcome.loss.isfinite()


def test_the_tokens_counted_beforehand_are_those_with_a_vector(tmp_path: Path) -> None:
    trained, batch = toy_learner(tmp_path, 2)
    trained.model.eval()
    texts, *masks = trained.prepare(batch)
    for groups, task, mask in zip(texts[1:], TASKS, masks, strict=True):
        assert 0 < mask.sum() < mask.size
        for group in groups:
            vectors = embed_tokens(trained.model, group.features, task, mask.shape[1])[: len(group.places)]
            np.testing.assert_array_equal((vectors != 0).any(dim=2).numpy(), mask[group.places])
