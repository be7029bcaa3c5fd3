"""The transformers in a model, made ready to train as parameters say."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.modeling_layers import GradientCheckpointingLayer

from batchwright.core.errors import InputError
from trainers.common.adapters import add_adapters
from trainers.common.distributed import world_size
from trainers.common.job import TrainJob
from trainers.common.packing import backbones
from trainers.common.passes import dropout_rates, set_dropout
from trainers.common.shares import share_weights

_FLOAT32 = "float32"
"""What transformers call the attention that is registered here."""


def prepare_backbones(job: TrainJob, model: nn.Module) -> None:
    """Let all transformers in ``model`` run as the job's parameters from ``dropout`` to ``checkpointing`` say.

    Raises:
        InputError: a transformer cannot do it.
    """
    common, transformers = job.common, backbones(model)
    set_dropout(model, common.dropout)
    for option in ("compile", "lora", "checkpointing", "fsdp"):
        if getattr(common, option) and not transformers:
            default = "null" if option == "lora" else "false"
            raise InputError(f"model '{job.start_model}': has no transformer; set {option} to {default}")
    if common.lora:
        add_adapters(job.name, common.lora, transformers, job.seed)
    if common.precision == "bfloat16" and job.device == "cpu":
        attend_in_float32(transformers)
    if common.weights == "bfloat16":
        _round_weights(job, transformers)
    if common.checkpointing:
        _checkpoint(job, transformers)
    if common.fsdp:
        _share_weights(job, model, transformers)
    if common.compile:
        _compile(job, transformers)


def attend_in_float32(transformers: Iterable[PreTrainedModel]) -> None:
    """Let attention on a CPU be computed in float32, also where all else is in bfloat16.

    Backpropagation through torch's attention in bfloat16 takes several times as long, which is half of a step.
    """
    for backbone in transformers:
        if backbone.config._attn_implementation == "sdpa":
            backbone.config._attn_implementation = _FLOAT32


def _attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    with torch.autocast(query.device.type, enabled=False):
        factors = (query.float(), key.float(), value.float())
        attended: tuple[Tensor, None] = sdpa_attention_forward(module, *factors, attention_mask, **options)
    return attended[0].to(value.dtype), None


AttentionInterface.register(_FLOAT32, _attend)
AttentionMaskInterface.register(_FLOAT32, sdpa_mask)


def _round_weights(job: TrainJob, transformers: list[PreTrainedModel]) -> None:
    _refuse_context(job, "weights: bfloat16 is not for attention to a context; set weights to float32")
    for backbone in transformers:
        for weights in backbone.parameters():
            if not weights.requires_grad:
                weights.data = weights.data.to(torch.bfloat16)


def _checkpoint(job: TrainJob, transformers: list[PreTrainedModel]) -> None:
    _refuse_context(job, "attention to a context cannot be computed again; set checkpointing to false")
    for backbone in transformers:
        if not backbone.supports_gradient_checkpointing:
            raise InputError(
                f"model '{job.start_model}': its layers cannot be computed again; set checkpointing to false"
            )
        backbone.gradient_checkpointing_enable({"use_reentrant": False})
        backbone.disable_input_require_grads()  # which the other way of checkpointing needs


def _share_weights(job: TrainJob, model: nn.Module, transformers: list[PreTrainedModel]) -> None:
    _refuse_context(job, "weights of attention to a context are not shared; set fsdp to false")
    if job.common.compile:
        raise InputError(f"train {job.name}: layers with shared weights are not compiled; set compile or fsdp to false")
    layers = [_layers(backbone) for backbone in transformers]
    if not all(layers):
        raise InputError(f"model '{job.start_model}': has no layers that repeat; set fsdp to false")
    if world_size() > 1:
        every = [layer for of_one in layers for layer in of_one]
        share_weights(model, every, job.device, job.common.precision, trained=job.common.lora is None)


def _compile(job: TrainJob, transformers: list[PreTrainedModel]) -> None:
    _refuse_context(job, "attention to a context cannot be compiled; set compile to false")
    for backbone in transformers:
        _check_dropout(job, backbone, "torch.compile")
        for layer in _layers(backbone):
            layer.compile()  # they share the compiled code


def _layers(backbone: PreTrainedModel) -> list[GradientCheckpointingLayer]:
    """The layers that repeat, as the library calls them."""
    return [module for module in backbone.modules() if isinstance(module, GradientCheckpointingLayer)]


def _refuse_context(job: TrainJob, why: str) -> None:
    if job.variant == "cde":
        raise InputError(f"train {job.name}: {why}")


def _check_dropout(job: TrainJob, backbone: PreTrainedModel, what: str) -> None:
    """Neither is sure to draw the same in both passes of a gradient cache."""
    if any(dropout_rates(backbone.config).values()) or (job.common.lora and job.common.lora.dropout):
        raise InputError(f"train {job.name}: {what} does not go together with dropout; set dropout to 0")
