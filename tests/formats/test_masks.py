"""Masks packed into bits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from batchwright.formats.shards import pack_mask, unpack_mask

SIZES = st.integers(1, 40)


@given(arrays.arrays(bool, st.tuples(SIZES, SIZES)))
def test_unpacking_restores_the_packed_mask(mask: np.ndarray) -> None:
    np.testing.assert_array_equal(unpack_mask(pack_mask(mask), mask.shape[1]), mask)


@given(st.integers(1, 40), st.data())
def test_bit_j_of_row_i_stands_for_document_j_lowest_bit_first(batch: int, data: st.DataObject) -> None:
    column = data.draw(st.integers(0, batch - 1))
    mask = np.zeros((1, batch), bool)
    mask[0, column] = True
    (row,) = pack_mask(mask)
    assert int.from_bytes(row, "little") == 1 << column
    assert len(row) == -(-batch // 8)


def test_a_rank_can_unpack_only_its_own_rows() -> None:
    mask = np.random.default_rng(0).random((12, 12)) < 0.3
    np.testing.assert_array_equal(unpack_mask(pack_mask(mask)[1::2], 12), mask[1::2])
