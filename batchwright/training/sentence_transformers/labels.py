"""The column ``label``: what a row tells the loss about its batch, as bytes, which trainers hand on untouched."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.core.errors import InputError

HEADER = 5 * 8
"""Bytes in front of a row's mask: as int64, batch, row, batch size, how many hard negatives it has, and whether the
batch stands for its domain. If it does, a float32 for each document of the batch comes between header and mask."""


class Marks(NamedTuple):
    """As in ``TrainBatch``: ``masked`` is ``(B, B)`` bool, ``negative_counts`` ``(B,)``."""

    masked: Tensor
    negative_counts: Tensor
    stands_for: Tensor | None


def encode(
    batch: int,
    rows: NDArray[np.int64],
    size: int,
    counts: NDArray[np.int64],
    masks: Sequence[bytes],
    stands_for: NDArray[np.float32] | None,
) -> Tensor:
    """Return the labels, a line of uint8 each, of some ``rows`` ``(n,)`` of a batch; ``stands_for`` is the batch's."""
    counted = np.empty((len(rows), 0), np.float32) if stands_for is None else stands_for[rows]
    same = [np.full(len(rows), each) for each in (batch, size, counted.shape[1] > 0)]
    header = np.stack([same[0], rows, same[1], counts, same[2]], axis=1).astype(np.int64)
    bits = np.frombuffer(b"".join(masks), dtype=np.uint8).reshape(len(rows), -1)
    return torch.from_numpy(np.concatenate([header.view(np.uint8), counted.view(np.uint8), bits], axis=1))


def decode(labels: Tensor | None) -> Marks:
    """Read the labels of one training batch.

    Raises:
        InputError: there are none, or their rows are not one whole training batch in its order.
    """
    if labels is None or labels.dtype != torch.uint8:
        raise InputError("the masked loss needs the masks; train on a dataset that shard_dataset made")
    header = labels[:, :HEADER].contiguous().view(torch.int64)
    numbers, rows, sizes, counts, counted = header.unbind(dim=1)
    size = int(sizes[0])
    places = torch.arange(len(rows), device=rows.device)
    found = set(numbers.tolist())
    if len(found) > 1 or len(rows) != size or not torch.equal(rows, places):
        raise InputError(
            f"{len(rows)} rows of {len(found)} packed batch(es) reached the loss, not one batch of {size} rows in its "
            "order, so that masks would fall on other documents; pass training_arguments(shards) to the training "
            "arguments, and train in one process on one device"
        )
    masks = HEADER + (4 * size if counted[0] else 0)
    stands_for = labels[:, HEADER:masks].contiguous().view(torch.float32) if counted[0] else None
    bits = labels[:, masks:, None] >> torch.arange(8, dtype=torch.uint8, device=labels.device) & 1
    return Marks(bits.flatten(1)[:, :size].bool(), counts, stands_for)
