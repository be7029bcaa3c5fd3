"""False-negative masks as bits, and the reason for each masked cell as a byte.

Bit ``j`` of row ``i`` excludes document ``j`` from query ``i``'s negatives.
"""

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
