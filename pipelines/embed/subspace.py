"""The subspace of a truncated SVD, computed so that it is the same on every processor.

Cosines in the subspace do not depend on which basis it has, so an orthonormal one is enough, and subspace iteration
finds it (Halko, Martinsson, Tropp 2011, algorithm 4.4). In a library's products, QR and SVD, the last bits depend on
instruction set and number of threads, and what follows would amplify them. Here all large products are of integers
whose sums stay below 2 ** 53, so that float64 holds them without rounding in any order; in between, numbers are rounded
to integers again. The one small factorisation, Cholesky's of the Gram matrix, is written as updates of elements, which
IEEE 754 defines to the last bit.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]

BITS = 20
"""Of the numbers of a basis after the binary point: the length of a column is 2 ** BITS."""
ROW_BITS = 14
"""Of the numbers of unit rows."""
ITERATIONS = 8
NEGLIGIBLE = 2.0**-36
"""A direction with a smaller share of the largest column's square is only rounding."""
_BLOCK = 16384


def integers(rows: csr_array) -> csr_array:
    """Return ``rows`` of at most unit length, times ``2 ** ROW_BITS``, rounded to integers."""
    return csr_array((np.rint(rows.data * 2.0**ROW_BITS), rows.indices, rows.indptr), shape=rows.shape)


def principal_subspace(rows: csr_array, rank: int) -> Floats:
    """Return a basis ``(words, rank)`` of the subspace that holds most of ``rows`` ``(n, words)``, in ``integers``.

    Its columns are orthonormal but for a factor of ``2 ** BITS`` and rounding; columns beyond the rank of ``rows`` are
    zero.
    """
    transposed = csr_array(rows.T)
    basis = np.random.default_rng(0).integers(-1000, 1000, (rows.shape[1], rank)).astype(np.float64)
    for _ in range(ITERATIONS):
        basis = orthonormal(transposed @ orthonormal(rows @ basis))
    return orthonormal(basis)  # once more, which takes away the error of the first


def orthonormal(columns: Floats) -> Floats:
    """Return an orthonormal basis of the space of ``columns`` ``(n, r)``, times ``2 ** BITS``, rounded to integers.

    Cholesky QR. ``columns`` are integers below 2 ** 53.
    """
    # No column is longer than 2 ** 25, so that no product of two is above 2 ** 50.
    longest = np.abs(columns).max(initial=1.0) * np.sqrt(len(columns))
    scaled = columns * 2.0 ** (24 - np.frexp(longest)[1])
    scaled = np.rint(scaled, out=scaled)
    inverse = _inverse_factor(scaled.T @ scaled)
    # Rows are shorter than 2 ** 25 and columns of the inverse than 2 ** 27.
    shift = 26 - np.frexp(np.abs(inverse).max(initial=0.0) * np.sqrt(len(inverse)))[1]
    product: Floats = scaled @ np.rint(inverse * 2.0**shift)
    product *= 2.0 ** (BITS - shift)
    return np.rint(product, out=product)


def _inverse_factor(gram: Floats) -> Floats:
    """Return the inverse of R ``(r, r)``, R'R = ``gram``, with zeros for columns that depend on those before them."""
    size, least = len(gram), NEGLIGIBLE * gram.diagonal().max(initial=0.0)
    rest, factor = gram.copy(), np.zeros_like(gram)
    independent = np.zeros(size, dtype=bool)
    for place in range(size):
        if rest[place, place] > least:
            independent[place] = True
            factor[place, place:] = rest[place, place:] / np.sqrt(rest[place, place])
            after = factor[place, place:]
            rest[place:, place:] -= after[:, None] * after
    inverse = np.diag(independent.astype(np.float64))
    for place in range(size - 1, -1, -1):
        if independent[place]:
            inverse[place] /= factor[place, place]
            inverse[:place] -= factor[:place, place, None] * inverse[place]
    return inverse
