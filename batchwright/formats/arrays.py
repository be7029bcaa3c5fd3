"""Reading ``.npy`` arrays, checked against the shape and dtype that their contract gives."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from batchwright.core.errors import InputError


def read_array(
    file: Path, dtype: DTypeLike, shape: tuple[int | None, ...], made_by: str, *, mapped: bool = False
) -> NDArray[Any]:
    """Read ``file``, or memory-map it, which keeps it open; ``None`` in ``shape`` fits any length, ``made_by`` is the
    stage that writes it.

    Raises:
        InputError: the file is missing, damaged or of another form.
    """
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r" if mapped else None)
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
