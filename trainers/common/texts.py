"""Texts prepared for a model, one step ahead: in groups of similar length, with little padding, or packed."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.common.packing import Packing
from trainers.common.passes import placed
from trainers.common.tokenise import Features

T = TypeVar("T")
PRESENT = "attention_mask"
"""Which of a model's inputs says what is not padding."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How texts are cut into groups of at most ``tokens`` tokens, padding included.

    If they are ``packed``, groups have about as many tokens each, and no padding. Else texts of similar length go
    together: one more pass of the model takes as long as ``pass_cost`` tokens. Lengths are padded to multiples of
    ``lengths``, and numbers of texts to multiples of ``counts``, so that few shapes occur. Beside each text's tokens,
    the model reads ``beside`` more.
    """

    tokens: int
    packed: bool = False
    beside: int = 0
    pass_cost: int = 64
    lengths: int = 1
    counts: int = 1

    @classmethod
    def on(cls, device: str, tokens: int, *, packed: bool = False, beside: int = 0) -> Self:
        """What suits a device: a pass that is too small leaves a GPU idle."""
        if device != "cuda" or packed:
            return cls(tokens=tokens, packed=packed, beside=beside)
        return cls(tokens=tokens, beside=beside, pass_cost=8192, lengths=8, counts=32)


@dataclass(frozen=True)
class Group:
    """Texts that go through a model together; a ``Part``.

    ``features`` are the model's inputs. ``places`` ``(n,)`` int64 are where the texts are among all texts of the rank,
    ``numbers`` ``(n,)`` int64 are their numbers in the step, which are the same for any number of ranks. ``lengths``
    ``(n,)`` int64 are the texts' tokens, if the model reads padding. There may be more texts, which nobody reads.
    """

    features: Features
    places: NDArray[np.int64]
    numbers: NDArray[np.int64]
    cut: Cut
    lengths: NDArray[np.int64] | None = None
    packing: Packing | None = None

    @property
    def tokens(self) -> int:
        """How many tokens the model reads."""
        if self.packing:
            return len(self.packing.places)
        own = [each for key, each in self.features.items() if key == "input_ids"]
        return sum(each.numel() + len(each) * self.cut.beside for each in own)

    def halves(self) -> "Sequence[Group]":
        """Itself in two; texts without padding stay together."""
        if self.lengths is None or len(self.places) < 2:
            return [self]
        half = len(self.places) // 2
        return [self._part(own) for own in (slice(half), slice(half, len(self.places)))]

    def on(self, device: torch.device) -> "Group":
        """The same with its inputs on ``device``."""
        packing = self.packing.on(device) if self.packing else None
        return replace(self, features=placed(self.features, device), packing=packing)

    def _part(self, own: slice) -> "Group":
        assert self.lengths is not None
        return _group(self.features, self.lengths[own], own, self.places[own], self.numbers[own], self.cut)


def group_texts(
    preprocess: Callable[[list[str]], Features], texts: list[str], numbers: NDArray[np.int64], cut: Cut
) -> list[Group]:
    """Turn texts into model inputs, in groups as ``cut`` says; ``numbers`` ``(n,)`` are theirs in the step.

    Models that read texts without padding get them in one group.
    """
    features = preprocess(texts) if texts else {}
    if PRESENT not in features:
        return [Group(features, np.arange(len(texts)), numbers, cut)] if texts else []
    lengths = features[PRESENT].sum(dim=1).numpy()
    groups = split_evenly(lengths, cut.tokens) if cut.packed else split_by_length(lengths, cut)
    return [_group(features, lengths[places], places, places, numbers[places], cut) for places in groups]


def _group(
    features: Features,
    lengths: NDArray[np.int64],
    rows: NDArray[np.int64] | slice,
    places: NDArray[np.int64],
    numbers: NDArray[np.int64],
    cut: Cut,
) -> Group:
    """The texts of ``features`` in ``rows``, padded as their ``cut`` says."""
    chosen = _choose(features, rows, cut)
    packing = Packing.of(chosen[PRESENT].cpu().numpy(), int(lengths.max())) if cut.packed else None
    return Group(chosen, places, numbers, cut, lengths, packing)


def _choose(features: Features, rows: NDArray[np.int64] | slice, cut: Cut) -> Features:
    """Model inputs of some texts, without columns that hold only padding, and with what fills up the shape."""
    shape = features[PRESENT].shape
    chosen = np.arange(shape[0])[rows]
    chosen = np.concatenate([chosen, np.repeat(chosen[:1], -len(chosen) % cut.counts)])
    columns = np.flatnonzero(features[PRESENT][chosen].any(dim=0))
    padding = np.setdiff1d(np.arange(shape[1]), columns)[: -len(columns) % cut.lengths]
    columns = np.sort(np.concatenate([columns, padding]))
    return {
        key: each[chosen][:, columns] if isinstance(each, Tensor) and each.shape == shape else each
        for key, each in features.items()
    }


def split_evenly(lengths: NDArray[np.int64], tokens: int) -> list[NDArray[np.int64]]:
    """Split texts of ``lengths`` ``(n,)`` into as few groups as hold about ``tokens``, of about as many each."""
    ends = lengths.cumsum()
    parts = max(-(-int(ends[-1]) // tokens), 1)
    middles = ends - lengths / 2
    cuts = np.searchsorted(middles, np.arange(1, parts) * ends[-1] / parts)
    return [part for part in np.split(np.arange(len(lengths)), cuts) if len(part)]


def split_by_length(lengths: NDArray[np.int64], cut: Cut) -> list[NDArray[np.int64]]:
    """Split texts of ``lengths`` ``(n,)`` into groups, given as their indices, the shortest first.

    The groups are those with the fewest tokens, padding included, if each counts as ``pass_cost`` tokens more; those of
    more than ``tokens`` are cut into as many of the same size as need be.
    """
    lengths = lengths + cut.beside
    order = lengths.argsort(kind="stable")
    groups = np.split(order, _best_cuts(-(-lengths[order] // cut.lengths), cut.pass_cost // cut.lengths))
    return [part for group in groups for part in _cut(group, max(cut.tokens // int(lengths[group[-1]]), 1))]


def _cut(group: NDArray[np.int64], most: int) -> list[NDArray[np.int64]]:
    return np.array_split(group, -(-len(group) // most))


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
