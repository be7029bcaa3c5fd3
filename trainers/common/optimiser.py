"""AdamW with linear warm-up and linear decay to zero."""

from collections.abc import Iterable

from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_linear_schedule_with_warmup

from trainers.common.params import Optimisation


def build_optimiser(
    model: nn.Module, params: Optimisation, steps: int, fresh: Iterable[nn.Parameter] = ()
) -> tuple[AdamW, LambdaLR]:
    """Build optimiser and schedule for ``steps`` steps. Biases and norms, which have one dimension, do not decay.

    ``fresh`` are those of the model's parameters that the start model does not have; they learn at
    ``new_learning_rate``. The schedule's first learning rate is that of the other parameters.
    """
    new = {id(parameter) for parameter in fresh}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {
            "params": [each for each in trained if (id(each) in new) == is_new and (each.ndim > 1) == decays],
            "weight_decay": params.weight_decay if decays else 0.0,
            "lr": rate,
        }
        for is_new, rate in ((False, params.learning_rate), (True, params.new_learning_rate or params.learning_rate))
        for decays in (True, False)
    ]
    optimiser = AdamW(groups, lr=params.learning_rate, fused=True)
    warmup = round(params.warmup_ratio * steps)
    schedule: LambdaLR = get_linear_schedule_with_warmup(optimiser, warmup, steps)  # type: ignore[no-untyped-call]
    return optimiser, schedule
