"""The column ``label``: what a row tells the loss about its batch, as bytes, which trainers hand on untouched."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.core.errors import InputError

HEADER = 4 * 8
"""Bytes of the four int64 in front of a row's mask: batch, row, batch size, and how many hard negatives it has."""


class Marks(NamedTuple):
    """``masked`` ``(B, B)`` bool excludes document j from query i's negatives; ``negative_counts`` is ``(B,)``."""

    masked: Tensor
    negative_counts: Tensor


def encode(batch: int, rows: NDArray[np.int64], size: int, counts: NDArray[np.int64], masks: Sequence[bytes]) -> Tensor:
    """Return the labels ``(n, HEADER + ceil(size / 8))`` uint8 of some ``rows`` ``(n,)`` of a batch."""
    header = np.stack([np.full(len(rows), batch), rows, np.full(len(rows), size), counts], axis=1).astype(np.int64)
    bits = np.frombuffer(b"".join(masks), dtype=np.uint8).reshape(len(rows), -1)
    return torch.from_numpy(np.concatenate([header.view(np.uint8), bits], axis=1))


def decode(labels: Tensor | None) -> Marks:
    """Read the labels of one training batch.

    Raises:
        InputError: there are none, or their rows are not one whole training batch in its order.
    """
    if labels is None or labels.dtype != torch.uint8:
        raise InputError("the masked loss needs the masks; train on a dataset that shard_dataset made")
    header = labels[:, :HEADER].contiguous().view(torch.int64)
    numbers, rows, sizes, counts = header.unbind(dim=1)
    size = int(sizes[0])
    places = torch.arange(len(rows), device=rows.device)
    found = set(numbers.tolist())
    if len(found) > 1 or len(rows) != size or not torch.equal(rows, places):
        raise InputError(
            f"{len(rows)} rows of {len(found)} packed batch(es) reached the loss, not one batch of {size} rows in its "
            "order, so that masks would fall on other documents; pass training_arguments(shards) to the training "
            "arguments, and train in one process on one device"
        )
    bits = labels[:, HEADER:, None] >> torch.arange(8, dtype=torch.uint8, device=labels.device) & 1
    return Marks(bits.flatten(1)[:, :size].bool(), counts)
