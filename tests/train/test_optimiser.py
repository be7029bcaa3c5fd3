"""Learning rates and weight decay of the parameters."""

import pytest
import torch
from torch import nn

from tests.train.toys import COMMON
from trainers.common.params import Optimisation
from trainers.common.step_loop import build_optimiser

FIELDS = Optimisation.model_fields


def optimisation(**changes: object) -> Optimisation:
    return Optimisation.model_validate({key: COMMON[key] for key in FIELDS if key in COMMON} | changes)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))


@pytest.mark.parametrize(("rate", "expected"), [(None, 1e-3), (5e-2, 5e-2)])
def test_new_parts_learn_at_a_rate_of_their_own(rate: float | None, expected: float) -> None:
    """Without decay, the first step of AdamW moves a parameter by the learning rate."""
    made = model()
    before = [parameter.detach().clone() for parameter in made.parameters()]
    params = optimisation(weight_decay=0, warmup_ratio=0, new_learning_rate=rate)
    optimiser, schedule = build_optimiser(made, params, 10, list(made[1].parameters()))
    assert schedule.get_last_lr()[0] == 1e-3, "the first rate is that of the old parts"
    made(torch.ones(3, 4)).square().sum().backward()
    optimiser.step()
    moved = [(new - old).abs() for new, old in zip(made.parameters(), before, strict=True)]
    for each, wanted in zip(moved, [1e-3, 1e-3, expected, expected], strict=True):
        torch.testing.assert_close(each, torch.full_like(each, wanted), rtol=1e-2, atol=0)


def test_every_trained_parameter_is_in_one_group_and_only_matrices_decay() -> None:
    made = model()
    made[0].bias.requires_grad_(False)
    optimiser, _ = build_optimiser(made, optimisation(), 10, list(made[1].parameters())[:1])
    groups = [(each, group) for group in optimiser.param_groups for each in group["params"]]
    assert {id(each) for each, _ in groups} == {id(each) for each in made.parameters() if each.requires_grad}
    assert len(groups) == 3
    assert all(group["weight_decay"] == (0.01 if each.ndim > 1 else 0) for each, group in groups)


def test_epsilon_slows_what_has_small_gradients() -> None:
    """The first step of AdamW is the rate times g / (|g| + epsilon)."""
    made = model()
    before = made[0].weight.detach().clone()
    optimiser, _ = build_optimiser(made, optimisation(weight_decay=0, warmup_ratio=0, adam_epsilon=0.5), 10)
    made(torch.ones(3, 4)).square().sum().backward()
    gradient = made[0].weight.grad
    assert gradient is not None
    optimiser.step()
    torch.testing.assert_close(before - made[0].weight, 1e-3 * gradient / (gradient.abs() + 0.5))
