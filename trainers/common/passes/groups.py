"""Texts in groups of similar length, so that little of what a model computes is padding."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Features = dict[str, Any]
PASS_COST = 64
"""How many tokens take as long as one more pass of a model."""


@dataclass(frozen=True)
class Group:
    """Texts that go through a model together.

    ``features`` are the model's inputs. ``places`` ``(n,)`` int64 are where the texts are among all texts of the rank,
    ``numbers`` ``(n,)`` int64 are their numbers in the step, which are the same for any number of ranks.
    """

    features: Features
    places: NDArray[np.int64]
    numbers: Tensor


def group_texts(
    preprocess: Callable[[list[str]], Features], texts: list[str], numbers: NDArray[np.int64], most: int
) -> list[Group]:
    """Turn texts into model inputs, in groups of at most ``most``; ``numbers`` ``(n,)`` are theirs in the step.

    Models that read texts without padding get them in one group.
    """
    features = preprocess(texts) if texts else {}
    present = features.get("attention_mask")
    if present is None:
        return [Group(features, np.arange(len(texts)), torch.from_numpy(numbers))] if texts else []
    groups = []
    for places in split_by_length(present.sum(dim=1).numpy(), most):
        columns = present[places].any(dim=0)
        own = {
            key: each[places][:, columns] if isinstance(each, Tensor) and each.shape == present.shape else each
            for key, each in features.items()
        }
        groups.append(Group(own, places, torch.from_numpy(numbers[places])))
    return groups


def split_by_length(lengths: NDArray[np.int64], most: int, pass_cost: int = PASS_COST) -> list[NDArray[np.int64]]:
    """Split texts of ``lengths`` ``(n,)`` into groups of at most ``most``, given as their indices, the shortest first.

    Within each ``most`` consecutive lengths, the groups are those with the fewest tokens, padding included, if each
    group counts as ``pass_cost`` tokens more.
    """
    order = lengths.argsort(kind="stable")
    parts = (order[start : start + most] for start in range(0, len(order), most))
    return [group for part in parts for group in np.split(part, _best_cuts(lengths[part], pass_cost))]


def _best_cuts(lengths: NDArray[np.int64], pass_cost: int) -> list[int]:
    """Where to cut sorted ``lengths`` ``(n,)``, by dynamic programming over the places where the length grows."""
    ends = [*(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
    starts = np.array([0, *ends[:-1]])
    costs, before = np.zeros(len(ends) + 1), []
    for number, end in enumerate(ends):
        options = costs[: number + 1] + lengths[end - 1] * (end - starts[: number + 1]) + pass_cost
        before.append(int(options.argmin()))
        costs[number + 1] = options[before[-1]]
    cuts, number = [], before[-1]
    while number > 0:
        cuts.append(ends[number - 1])
        number = before[number - 1]
    return cuts[::-1]
