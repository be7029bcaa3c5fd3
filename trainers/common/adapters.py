"""LoRA: transformers keep their weights, and learn adapters of low rank beside them (Hu et al., arXiv 2106.09685)."""

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import PreTrainedModel

from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from trainers.common.params import Lora
from trainers.common.passes import drawing

FOLDER = "adapter"
_NAME = "default"
"""What peft calls an adapter that has no other name."""


def add_adapters(name: str, lora: Lora, transformers: Sequence[PreTrainedModel], seed: int) -> None:
    """Freeze the weights of the training's ``transformers``, and put adapters, drawn with ``seed``, beside them.

    Raises:
        InputError: a transformer has no such layers, or no adapter for them.
    """
    from peft import LoraConfig, inject_adapter_in_model  # takes a second, and is optional

    for number, transformer in enumerate(transformers):
        targets = lora.targets if isinstance(lora.targets, str) else _found(name, lora.targets, transformer)
        options: Any = {"r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": lora.dropout}
        try:
            with drawing([seed, number], torch.device("cpu")):
                inject_adapter_in_model(LoraConfig(target_modules=targets, **options), transformer)
        except ValueError as error:
            raise InputError(f"train {name}: lora: {str(error).splitlines()[0]}") from error


def _found(name: str, targets: Sequence[str], transformer: PreTrainedModel) -> list[str]:
    """The names of layers; peft would leave out those that are not there."""
    linear = [module for module, each in transformer.named_modules() if isinstance(each, nn.Linear)]
    for target in targets:
        if not any(f".{module}".endswith(f".{target}") for module, _ in transformer.named_modules()):
            known = ", ".join(sorted({module.rpartition(".")[2] for module in linear}))
            raise InputError(
                f"train {name}: lora.targets has {target}, but the transformer's linear layers are {known}"
            )
    return list(targets)


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """Let all layers of ``model`` be plain inside the block, with what adapters add in their weights; then as before.

    Merged on the CPU, in float32, and rounded to what the weights are. The block must not compute with them.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, BaseTunerLayer)
    ]
    for parent, name, child in found:
        setattr(parent, name, _plain(child))
    try:
        yield
    finally:
        for parent, name, child in found:
            setattr(parent, name, child)


@torch.no_grad()
def _plain(layer: Any) -> nn.Module:
    base: Any = layer.get_base_layer()
    plain = copy.copy(base)
    plain._parameters = dict(base._parameters)
    weight = base.weight.float() + layer.get_delta_weight(_NAME).float()
    plain.weight = nn.Parameter(weight.to("cpu", base.weight.dtype), requires_grad=False)
    return plain  # type: ignore[no-any-return]


def save_adapters(transformers: Sequence[PreTrainedModel], folder: Path, base: str) -> None:
    """Write the adapters alone, for the model ``base``, as peft and sentence-transformers read them.

    They go into ``folder/adapter``, or, of several transformers, into folders in it that count them.
    """
    from peft import get_peft_model_state_dict

    for number, transformer in enumerate(transformers, start=1):
        place = folder / FOLDER / (str(number) if len(transformers) > 1 else "")
        place.mkdir(parents=True)
        state = get_peft_model_state_dict(transformer, adapter_name=_NAME, save_embedding_layers=False)
        tensors = {f"base_model.model.{key}": each.detach().cpu().contiguous() for key, each in state.items()}
        save_file(tensors, place / "adapter_model.safetensors", metadata={"format": "pt"})
        config: Any = transformer.peft_config
        config[_NAME].save_pretrained(place)
        file = place / "adapter_config.json"
        known = {**json.loads(file.read_bytes()), "base_model_name_or_path": base, "inference_mode": True}
        write_json(file, {key: sorted(each) if isinstance(each, list) else each for key, each in known.items()})
