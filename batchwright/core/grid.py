"""Vectors on a grid, whose inner products are exact: equal on every processor, with any library and number of threads.

A float32 sum usually depends on the order of its terms, and that on instruction sets, libraries and threads; where
scores are compared, the last bits then decide. Here every number is a multiple of ``STEP``, a power of two; rounding
leaves no unit vector of up to 1,000 dimensions longer than 1.01. A product of two numbers is a multiple of ``STEP **
2``, and all partial sums of an inner product are at most 1.03 (Cauchy and Schwarz). So each of them is an integer of at
most 23 bits times ``STEP ** 2``, which float32 holds without rounding; one bit is left for the sum of two such
products. TensorFloat-32 and float16 hold the numbers themselves.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 2.0**-11
"""A vector's direction changes by about .0003 when its numbers are rounded to this."""
COARSE = 2 * STEP
"""For sums of two unit vectors: the squared distances of points up to 2 long are exact in these steps."""


def rounded(values: NDArray[np.floating[Any]], step: float = STEP) -> NDArray[np.float32]:
    """Return ``values`` rounded to multiples of ``step``, a power of two; none is a negative zero."""
    steps = np.rint(values * values.dtype.type(1 / step)).astype(np.float32, copy=False)
    steps *= np.float32(step)
    steps += np.float32(0)
    return steps


def unit(vectors: NDArray[np.floating[Any]], least: float = 0.0) -> NDArray[np.float32]:
    """Return ``vectors`` ``(n, d)`` scaled to unit length and rounded to the grid; those no longer than ``least`` as 0.

    Lengths are computed in float64, whose last bits rounding to the grid takes away.
    """
    long = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("nd,nd->n", long, long))[:, None]
    long /= np.where(lengths > least, lengths, np.inf)
    return rounded(long)
