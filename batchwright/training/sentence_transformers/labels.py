"""The column ``label``: what a row tells the masked losses about its batch, as bytes, which trainers hand on as is."""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.core.errors import InputError
from batchwright.training.losses import Objective

HEADER = 7 * 8
"""Bytes in front of a row's mask: as int64, batch, row, batch size, how many hard negatives it has, and how many
numbers come between header and mask: how many documents each one of the batch stands for, a teacher's scores of the
row's document and hard negatives, and the row's weight. They are float32; there may be none of each."""


class Marks(NamedTuple):
    """As in ``TrainBatch``: ``masked`` is ``(B, B)`` bool, ``negative_counts`` ``(B,)``."""

    masked: Tensor
    negative_counts: Tensor
    stands_for: Tensor | None
    taught: Tensor | None
    weights: Tensor | None

    def weighted(self, objective: Objective) -> Objective:
        """Return the loss in which rows have their weights; as it is, bit for bit, if all are 1."""
        plain = self.weights is None or bool((self.weights == 1).all())
        return objective if plain else partial(objective, weights=self.weights)

    def absent(self, columns: int) -> Tensor:
        """Where so many columns of hard negatives hold none, ``(B, columns)`` bool."""
        return torch.arange(columns, device=self.negative_counts.device) >= self.negative_counts[:, None]


def encode(
    batch: int,
    rows: NDArray[np.int64],
    size: int,
    counts: NDArray[np.int64],
    masks: Sequence[bytes],
    stands_for: NDArray[np.float32] | None,
    taught: NDArray[np.float32] | None,
    weights: NDArray[np.float32] | None,
) -> Tensor:
    """Return the labels, a line of uint8 each, of some ``rows`` ``(n,)`` of a batch; all else is of these rows."""
    none = np.empty((len(rows), 0), np.float32)
    numbers = [none if each is None else each.astype(np.float32) for each in (stands_for, taught, weights)]
    same = [np.full(len(rows), each) for each in (batch, size, *(each.shape[1] for each in numbers))]
    header = np.stack([same[0], rows, same[1], counts, *same[2:]], axis=1).astype(np.int64)
    bits = np.frombuffer(b"".join(masks), dtype=np.uint8).reshape(len(rows), -1)
    parts = [header.view(np.uint8), *(np.ascontiguousarray(each).view(np.uint8) for each in numbers), bits]
    return torch.from_numpy(np.concatenate(parts, axis=1))


def decode(labels: Tensor) -> Marks:
    """Read the labels of one training batch.

    Raises:
        InputError: their rows are not one whole training batch in its order.
    """
    header = labels[:, :HEADER].contiguous().view(torch.int64)
    numbers, rows, sizes, counts, *further = header.unbind(dim=1)
    size = int(sizes[0])
    places = torch.arange(len(rows), device=rows.device)
    found = set(numbers.tolist())
    if len(found) > 1 or len(rows) != size or not torch.equal(rows, places):
        raise InputError(
            f"{len(rows)} rows of {len(found)} packed batch(es) reached the loss, not one batch of {size} rows in its "
            "order, so that masks would fall on other documents; pass training_arguments(shards) to the training "
            "arguments, and use one device in each process (without GPUs, use_cpu=True)"
        )
    ends = np.cumsum([HEADER, *(4 * int(each[0]) for each in further)]).tolist()
    stands_for, taught, weights = (
        labels[:, start:end].contiguous().view(torch.float32) if end > start else None
        for start, end in itertools.pairwise(ends)
    )
    bits = labels[:, ends[-1] :, None] >> torch.arange(8, dtype=torch.uint8, device=labels.device) & 1
    return Marks(
        bits.flatten(1)[:, :size].bool(), counts, stands_for, taught, None if weights is None else weights[:, 0]
    )
