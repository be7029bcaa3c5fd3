"""What the rows of a batch are to each other: masked cells and why, what each document stands for, and meetings.

Bit ``j`` of row ``i`` of a mask excludes document ``j`` from the negatives of query ``i``. Two pairs meet if they
share a batch.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

REASONS = ("known_positive", "duplicate", "judged", "score")
"""Why a document is masked: it is paired with the query elsewhere, a duplicate of its own document, judged to answer
it, or found by the surrogate or the cross-encoder."""
UNKNOWN = "unknown"
"""The reason of every masked cell in shards of format 1."""
NAMES = (*REASONS, UNKNOWN)
"""A byte of the column ``reasons`` is a place in this tuple."""
NOWHERE = -1

Numbers = NDArray[np.int32]
"""The number of each pair's batch in one epoch, ``(pairs,)``, or ``NOWHERE``."""


def pack_mask(mask: NDArray[np.bool_]) -> list[bytes]:
    """Pack each row of a boolean ``(B, B)`` mask into ``ceil(B / 8)`` bytes, lowest bit first."""
    return [row.tobytes() for row in np.packbits(mask, axis=1, bitorder="little")]


def unpack_mask(rows: list[bytes], batch: int) -> NDArray[np.bool_]:
    """Unpack rows into a boolean mask ``(len(rows), batch)``."""
    packed = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
    return np.unpackbits(packed, axis=1, count=batch, bitorder="little").astype(bool)


def pack_reasons(reasons: NDArray[np.uint8], mask: NDArray[np.bool_]) -> list[bytes]:
    """Cut the reasons ``(M,)`` of all masked cells, row after row, into those of each row of ``mask`` ``(B, B)``."""
    every, ends = reasons.tobytes(), np.cumsum(mask.sum(axis=1)).tolist()
    return [every[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def read_reasons(batch: pa.RecordBatch) -> NDArray[np.int8]:
    """Return why each cell of a training batch is masked, ``(B, B)``: a place in ``NAMES``, or -1 if it is not."""
    mask = unpack_mask(batch["mask"].to_pylist(), batch.num_rows)
    cells = np.full(mask.shape, -1, np.int8)
    cells[mask] = np.frombuffer(b"".join(batch["reasons"].to_pylist()), np.int8)
    return cells


def read_scores(batch: pa.RecordBatch, hard_negatives: int) -> NDArray[np.float32]:
    """Return a teacher's scores of each row's document and first ``hard_negatives`` hard negatives, ``(B, 1 + K)``.

    K is how many of these any row has. Where the teacher has no score, there is NaN.

    Raises:
        ValueError: a row has scores, but not one for each of its texts.
    """
    scores, texts = batch["scores"], batch["negatives"].value_lengths().to_numpy()
    lengths = scores.value_lengths().to_numpy()
    if ((lengths != texts + 1) & (lengths != 0)).any():
        raise ValueError("scores are not one for each document and hard negative")
    there = np.arange(texts.max(initial=0) + 1) < lengths[:, None]
    table = np.full(there.shape, np.nan, np.float32)
    table[there] = scores.flatten().to_numpy()
    return table[:, : 1 + min(int(texts.max(initial=0)), hard_negatives)]


def stands_for(groups: NDArray[np.integer], documents: int) -> NDArray[np.float32]:
    """Return how many of a domain's ``documents`` document j stands for as a negative of query i, ``(B, B)``.

    ``groups`` ``(B,)`` are the same for rows that were put together because they are alike. These stand for themselves;
    a row's documents from elsewhere share all that remain of the domain, and stand for one at least.
    """
    same = groups[:, None] == groups[None, :]
    own = same.sum(axis=1)
    each = np.maximum((documents - own) / np.maximum(len(groups) - own, 1), 1)
    return np.where(same, 1, each[:, None]).astype(np.float32)


def met_before(batches: Iterable[tuple[int, NDArray[np.int64]]], pairs: int) -> list[float]:
    """Return the share of each batch's meetings that also took place in an earlier epoch.

    ``batches`` are epochs and rows, in training order; rows are numbers of pairs below ``pairs``.
    """
    epochs: dict[int, Numbers] = {}
    shares = []
    for number, (epoch, rows) in enumerate(batches):
        shares.append(share_met(rows, [numbers for earlier, numbers in epochs.items() if earlier < epoch]))
        if epoch not in epochs:
            epochs[epoch] = np.full(pairs, NOWHERE, np.int32)
        epochs[epoch][rows] = number
    return shares


def share_met(rows: NDArray[np.int64], epochs: Sequence[Numbers]) -> float:
    """Return the share of the meetings of ``rows`` ``(B,)`` that take place in any of ``epochs``."""
    met = np.zeros((len(rows), len(rows)), dtype=bool)
    for numbers in epochs:
        of = numbers[rows]
        met |= (of[:, None] == of[None, :]) & (of != NOWHERE)[:, None]
    return float((met.sum() - np.trace(met)) / max(len(rows) * (len(rows) - 1), 1))


def batch_numbers(batches: Iterable[tuple[int, NDArray[np.int64]]], pairs: int) -> dict[int, Numbers]:
    """Return the number of each pair's batch, by epoch; ``batches`` are as ``met_before`` takes them."""
    epochs: dict[int, Numbers] = {}
    for number, (epoch, rows) in enumerate(batches):
        if epoch not in epochs:
            epochs[epoch] = np.full(pairs, NOWHERE, np.int32)
        epochs[epoch][rows] = number
    return epochs
