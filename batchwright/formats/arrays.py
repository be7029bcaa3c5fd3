"""Reads ``.npy`` arrays and checks their shape and dtype."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from batchwright.core.errors import InputError
from batchwright.core.seal import check

SMALL = 1 << 20


def read_array(
    file: Path, dtype: DTypeLike, shape: tuple[int | None, ...], made_by: str, *, mapped: bool = False
) -> NDArray[Any]:
    """Read ``file``; with ``mapped``, memory-map it instead, which keeps it open, if it has more than ``SMALL`` bytes.

    ``None`` in ``shape`` matches any length; ``made_by`` is the stage that writes the file.

    Raises:
        InputError: the file is missing or damaged, or has another dtype or shape.
    """
    check(file)
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r" if mapped and file.stat().st_size > SMALL else None)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; run the stage '{made_by}' first") from None
    except (ValueError, EOFError) as error:
        raise InputError(f"{file}: damaged ({error}); run the stage '{made_by}' again") from None
    fits = len(array.shape) == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        raise InputError(
            f"{file}: expected {np.dtype(dtype)} of shape {shape}, found {array.dtype} of shape {array.shape}; "
            f"run the stage '{made_by}' again"
        )
    return array
