"""Matrices that several ranks share (FSDP2): each keeps a part of every one, and gathers a layer when it computes.

Their gradients and the optimiser's states are shared likewise; the gradients are sums over ranks from the backward pass
on. Vectors (biases and norms) are small and stay whole on all ranks, in float32 whatever layers are gathered in.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils._pytree import tree_map_only

from batchwright.formats.runs import Precision
from trainers.common.distributed import rank, world_size

T = TypeVar("T")


def share_weights(
    model: nn.Module, layers: Sequence[nn.Module], device: str, precision: Precision, *, trained: bool
) -> None:
    """Let each of the ranks keep a part of the matrices in ``model``; a pass gathers one of ``layers`` after the other.

    Unless they are ``trained``, these are the frozen ones only, and others stay whole on all ranks. With ``precision``
    bfloat16, layers are gathered in it. What is between layers is gathered as it is, and stays until the pass ends.
    """
    mesh = init_device_mesh(device, (world_size(),))
    whole = {each for each in model.parameters() if each.ndim < 2 or (each.requires_grad and not trained)}
    rounded = MixedPrecisionPolicy(torch.bfloat16, torch.float32, cast_forward_inputs=False)
    of_layers = rounded if precision == "bfloat16" else MixedPrecisionPolicy()
    for layer in layers[::-1]:  # those inside others first
        fully_shard(layer, mesh=mesh, reshard_after_forward=True, mp_policy=of_layers, ignored_params=whole)
    fully_shard(model, mesh=mesh, reshard_after_forward=True, ignored_params=whole)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1)  # a sum, not a mean
            module.set_force_sum_reduction_for_comms(True)  # gloo cannot multiply before


def shared(model: nn.Module) -> bool:
    """Whether ranks share weights of ``model``."""
    return any(isinstance(each, DTensor) for each in model.parameters())


def gathered(state: T) -> T:
    """On rank 0, ``state`` with whole tensors, in the processor's memory, in place of parts; others keep their parts.

    All ranks must call it.
    """

    def kept(part: DTensor) -> Tensor:
        tensor = whole(part)
        return tensor.cpu() if rank() == 0 else part

    return tree_map_only(DTensor, kept, state)  # type: ignore[no-any-return]


def whole(tensor: Tensor) -> Tensor:
    """``tensor``, put together from all ranks' parts if they share it; all ranks must call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def part_of(whole: Tensor, like: Tensor) -> Tensor:
    """This rank's part of a tensor that all ranks have, if ranks share ``like``, which has its shape."""
    if not isinstance(like, DTensor) or whole.shape != like.shape:
        return whole
    return distribute_tensor(whole.to(like.device), like.device_mesh, like.placements, src_data_rank=None).clone()


def clip_gradients(parameters: Iterable[nn.Parameter], most: float) -> Tensor:
    """Scale all gradients so that their norm, of shared and whole ones together, is at most ``most``; return the norm.

    As torch's own, which takes only one kind at a time.
    """
    given = [each for each in parameters if each.grad is not None]
    kinds = [[each for each in given if isinstance(each, DTensor) == shares] for shares in (False, True)]
    gradients = [[each.grad for each in kind if each.grad is not None] for kind in kinds if kind]
    norms = [whole(nn.utils.get_total_norm(of_kind)) for of_kind in gradients]
    norm = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms))
    for kind in kinds:
        nn.utils.clip_grads_with_norm_(kind, most, norm)
    return norm
