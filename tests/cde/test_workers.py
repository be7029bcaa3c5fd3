"""The shared context of two workers against that of one."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.training.batches import TrainBatch
from tests.cde.encoders import encoder
from tests.train.ranks import WORLD, run_ranks
from trainers.cde.learner import ContextTexts, SharedContext
from trainers.common.distributed import own_rows, sum_gradients
from trainers.common.gradient_cache import Passes
from trainers.common.job import TrainJob
from trainers.common.params import Common
from trainers.common.passes import set_dropout
from trainers.common.texts import Cut

DOCUMENTS = ["one two", "three", "four five six", "seven", "eight nine", "ten"]


def test_two_workers_read_one_context_and_give_its_gradient(tmp_path: Path) -> None:
    run_ranks(_work, tmp_path)
    (first, gradient), (second, same) = (torch.load(tmp_path / f"{rank}.pt") for rank in range(WORLD))
    assert torch.equal(first, second)
    assert torch.equal(gradient, same)
    expected, whole = _share(encoder(documents=4), [0, 1])
    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(gradient, whole, atol=1e-5, rtol=1e-4)


def _work(rank: int, folder: Path) -> None:
    made = encoder(documents=4)  # only rank 0 could write a model
    dist.init_process_group("gloo", store=dist.FileStore(str(folder / "store"), WORLD), rank=rank, world_size=WORLD)
    torch.save(_share(made, [rank]), folder / f"{rank}.pt")
    dist.destroy_process_group()


def _share(made: ContextualEncoder, readers: list[int]) -> tuple[Tensor, Tensor]:
    """The prepared context, and the parameters' gradient after ``readers`` have left theirs."""
    set_dropout(made.train(), 0)
    common = Common(mini_batch_size=2)
    info = SimpleNamespace(max_length=16)
    job = cast(TrainJob, SimpleNamespace(seed=0, device="cpu", common=common, info=info))
    rows = own_rows()
    batch = TrainBatch(
        index=0,
        rows=rows,
        queries=DOCUMENTS[rows],
        documents=DOCUMENTS[rows],
        negatives=[],
        negative_counts=np.zeros(6, np.int64),
        masked=np.zeros((6, 6), bool),
        stands_for=None,
    )
    texts = ContextTexts.choose(batch, 4, made.first.preprocess, Cut(tokens=32), np.random.default_rng(0))
    shared = SharedContext(Passes(job, made), made, batch, texts)
    for reader in readers:
        wanted = torch.randn(shared.prepared.shape, generator=torch.Generator().manual_seed(reader))
        (shared.prepared * wanted).sum().backward()
    shared.backward()
    sum_gradients(made.parameters())
    flat = [torch.zeros_like(each) if each.grad is None else each.grad for each in made.parameters()]
    return shared.prepared.detach(), torch.cat([each.flatten() for each in flat])
