"""Splits a batch over several processes: rank r of W holds rows ``r::W``.

Every rank computes the loss of the whole batch on gathered, detached embeddings, and backpropagates only the gradient
at its own rows. Summed over ranks, this is the gradient that one process would compute on the whole batch, for any W.
DistributedDataParallel would average the gradients instead, and synchronise them on every chunk of a gradient cache.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.tensor import DTensor

T = TypeVar("T")


def rank() -> int:
    """This process's rank; 0 without a process group."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """The number of processes that train; 1 without a process group."""
    return dist.get_world_size() if dist.is_initialized() else 1


@contextmanager
def in_turn() -> Iterator[None]:
    """Let the ranks of a machine run the block one after the other; all ranks must come to it."""
    turn = int(os.environ.get("LOCAL_RANK", rank()))
    for _ in range(turn):
        dist.barrier()
    try:
        yield
    finally:
        for _ in range(world_size() - turn):
            dist.barrier()


def own_rows() -> slice:
    """The rows of a batch that this rank holds."""
    return slice(rank(), None, world_size())


def gather_rows(local: Tensor, total: int) -> Tensor:
    """Gather the rows of all ranks in the batch's order, ``(total, ...)``, without gradient."""
    local = local.detach()
    world = world_size()
    if world == 1:
        return local
    # Ranks may differ by one row, but collectives need equal shapes.
    padded = local.new_zeros(-(-total // world), *local.shape[1:])
    padded[: len(local)] = local
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    return torch.stack(parts, dim=1).flatten(0, 1)[:total]


def gather_objects(local: T) -> list[T]:
    """What each rank has, in the order of ranks; waits for all of them."""
    if world_size() == 1:
        return [local]
    parts: list[Any] = [None] * world_size()
    dist.all_gather_object(parts, local)
    return parts


def sum_ranks(local: Tensor) -> Tensor:
    """Sum a tensor over ranks, without gradient."""
    total = local.detach()
    if world_size() > 1:
        total = total.clone()
        dist.all_reduce(total)
    return total


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace every gradient by its sum over ranks; a gradient that is None on all ranks stays None.

    Gradients of weights that ranks share are sums already.
    """
    if world_size() == 1:
        return
    trained = [each for each in parameters if each.requires_grad and not isinstance(each, DTensor)]
    if not trained:
        return
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in trained]
    used = torch.tensor([float(each.grad is not None) for each in trained], device=gradients[0].device)
    flat = torch.cat([part.flatten() for part in (*gradients, used)])
    dist.all_reduce(flat)
    *sums, used = torch.split(flat, [*(each.numel() for each in trained), len(trained)])
    for parameter, total, use in zip(trained, sums, used.tolist(), strict=True):
        parameter.grad = total.view_as(parameter) if use else None
