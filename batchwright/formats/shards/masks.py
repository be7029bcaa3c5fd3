"""False-negative masks as bits: bit ``j`` of row ``i`` excludes document ``j`` from query ``i``'s negatives."""

import numpy as np
from numpy.typing import NDArray


def pack_mask(mask: NDArray[np.bool_]) -> list[bytes]:
    """Pack each row of a boolean ``(B, B)`` mask into ``ceil(B / 8)`` bytes, lowest bit first."""
    return [row.tobytes() for row in np.packbits(mask, axis=1, bitorder="little")]


def unpack_mask(rows: list[bytes], batch: int) -> NDArray[np.bool_]:
    """Unpack rows into a boolean mask ``(len(rows), batch)``."""
    packed = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
    return np.unpackbits(packed, axis=1, count=batch, bitorder="little").astype(bool)
