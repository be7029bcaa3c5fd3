"""Keys are sorted and found as the bytes that they are."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.fingerprint import text_keys
from batchwright.core.spill import find_keys, first_in, key_words, keys_of, sort_keys

# Few different bytes, so that many keys share their high word, and some are equal.
KEYS = st.lists(st.lists(st.sampled_from([0, 1, 255]), min_size=3, max_size=3).map(bytes), max_size=25)


def wide(keys: list[bytes]) -> np.ndarray:
    """Keys that differ in the first, the eighth and the last byte."""
    return np.frombuffer(b"".join(bytes([a, *[0] * 6, b, *[0] * 7, c]) for a, b, c in keys), "V16")


@given(KEYS, KEYS)
def test_keys_are_found_where_they_are_and_nowhere_else(held: list[bytes], asked: list[bytes]) -> None:
    ordered = sorted(set(held))
    rows = find_keys(key_words(wide(ordered)), wide(asked))
    assert rows.tolist() == [ordered.index(key) if key in ordered else -1 for key in asked]


@given(KEYS)
def test_the_first_of_equal_keys_are_told_in_order(keys: list[bytes]) -> None:
    words = key_words(wide(keys))
    order = sort_keys(words)
    assert [keys[row] for row in order] == sorted(keys)
    firsts = order[first_in(words, order)]
    assert firsts.tolist() == [keys.index(key) for key in sorted(set(keys))]


@pytest.mark.parametrize("count", [0, 3, 70_000])
def test_keys_of_texts_are_those_of_all_at_once(workspace: Path, count: int) -> None:
    texts = [str(number) for number in range(count)]
    np.testing.assert_array_equal(keys_of(iter(texts)), text_keys(texts))
