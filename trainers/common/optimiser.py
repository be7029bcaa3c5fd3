"""AdamW with linear warm-up and linear decay to zero."""

from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_linear_schedule_with_warmup

from trainers.common.params import Optimisation


def build_optimiser(model: nn.Module, params: Optimisation, steps: int) -> tuple[AdamW, LambdaLR]:
    """Build optimiser and schedule for ``steps`` steps. Biases and norms, which have one dimension, do not decay."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [each for each in trained if each.ndim > 1], "weight_decay": params.weight_decay},
        {"params": [each for each in trained if each.ndim <= 1], "weight_decay": 0.0},
    ]
    optimiser = AdamW(groups, lr=params.learning_rate)
    warmup = round(params.warmup_ratio * steps)
    schedule: LambdaLR = get_linear_schedule_with_warmup(optimiser, warmup, steps)  # type: ignore[no-untyped-call]
    return optimiser, schedule
