"""Texts prepared for a model: one step ahead, in groups of similar length, so that little of it is padding."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

T = TypeVar("T")
Features = dict[str, Any]
PRESENT = "attention_mask"
"""Which of a model's inputs says what is not padding."""
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
    numbers: NDArray[np.int64]

    def parts(self, most: int) -> "list[Group]":
        """Cut into groups of at most ``most`` texts; texts without padding stay together."""
        if PRESENT not in self.features:
            return [self]
        return [self.part(start, most) for start in range(0, len(self.places), most)]

    def part(self, start: int, most: int) -> "Group":
        """Take at most ``most`` texts from ``start`` on, but all texts without padding."""
        if PRESENT not in self.features or len(self.places) <= most:
            return self
        own = slice(start, start + most)
        return Group(_choose(self.features, own), self.places[own], self.numbers[own])


def group_texts(
    preprocess: Callable[[list[str]], Features], texts: list[str], numbers: NDArray[np.int64], most: int
) -> list[Group]:
    """Turn texts into model inputs, in groups of at most ``most``; ``numbers`` ``(n,)`` are theirs in the step.

    Models that read texts without padding get them in one group.
    """
    features = preprocess(texts) if texts else {}
    if PRESENT not in features:
        return [Group(features, np.arange(len(texts)), numbers)] if texts else []
    groups = split_by_length(features[PRESENT].sum(dim=1).numpy(), most)
    return [Group(_choose(features, places), places, numbers[places]) for places in groups]


def _choose(features: Features, places: NDArray[np.int64] | slice) -> Features:
    """Model inputs of some texts, without columns that hold only padding."""
    shape, present = features[PRESENT].shape, features[PRESENT][places]
    columns = present.any(dim=0)
    return {
        key: each[places][:, columns] if isinstance(each, Tensor) and each.shape == shape else each
        for key, each in features.items()
    }


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


class Ahead(Generic[T]):
    """Calls ``prepare`` with the number of a step, one step ahead, until ``steps``.

    An error in it is raised at the step that it belongs to.
    """

    def __init__(self, prepare: Callable[[int], T], steps: int, executor: ThreadPoolExecutor) -> None:
        self._prepare, self._steps, self._executor = prepare, steps, executor
        self._next: tuple[int, Future[T]] | None = None

    def __call__(self, step: int) -> T:
        """Return what was prepared for ``step``, and begin with the next one."""
        known = self._next is not None and self._next[0] == step
        future = self._next[1] if known and self._next else self._submit(step)
        prepared = future.result()
        self._next = (step + 1, self._submit(step + 1)) if step + 1 < self._steps else None
        return prepared

    def settle(self) -> None:
        """Wait until nothing is being prepared: a tokenizer cannot be saved while it is in use."""
        if self._next:
            wait([self._next[1]])

    def _submit(self, step: int) -> Future[T]:
        return self._executor.submit(self._prepare, step)


@contextmanager
def ahead(prepare: Callable[[int], T], steps: int) -> Iterator[Ahead[T]]:
    """Yield an ``Ahead``; its thread ends with the block."""
    with ThreadPoolExecutor(1, "prepare") as executor:
        yield Ahead(prepare, steps, executor)
