"""Arrays and texts in files without a name are what they would be in memory, and take none."""

import errno
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.core import spill
from batchwright.core.spill import (
    blocks_of,
    cut_small,
    slices,
    spilled,
    spilled_rows,
    spilled_texts,
    text_bounds,
    texts_in,
)
from tests.helpers import run_python

MEASURED = """
from pathlib import Path
import numpy as np, pyarrow as pa
from batchwright.core.spill import spilled, spilled_texts
def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
before = held()
array = spilled(1 << 26, np.uint8)
array[:] = 7
texts = spilled_texts(pa.array(["x" * 1_000_000]) for _ in range(64))
print(held() - before, int(array.sum(dtype=np.int64)), len(texts))
"""
TEXTS = st.lists(st.lists(st.text(max_size=6), max_size=5), max_size=4)


@pytest.mark.parametrize("rows", [0, 3, 1 << 20])
def test_a_spilled_array_is_made_of_zeros_and_keeps_what_is_written(workspace: Path, rows: int) -> None:
    array = spilled((rows, 2), np.int32)
    assert array.shape == (rows, 2) and array.dtype == np.int32 and not array.any()
    array[:] = np.arange(2 * rows).reshape(rows, 2)
    np.testing.assert_array_equal(array[:, 1], np.arange(1, 2 * rows, 2))
    assert not list(Path(".scratch/spill").glob("*"))


@pytest.mark.parametrize("sizes", [[0], [0, 4, 0, 3], [300_000, 2, 300_000]])
def test_spilled_rows_are_concatenated(workspace: Path, sizes: list[int]) -> None:
    blocks = [np.random.default_rng(size).integers(9, size=(size, 3)) for size in sizes]
    np.testing.assert_array_equal(spilled_rows(iter(blocks)), np.concatenate(blocks))


@pytest.mark.parametrize("small", [1, 1 << 20])
@settings(deadline=None)
@given(parts=TEXTS, cut=st.integers(0, 5))
def test_spilled_texts_are_concatenated_slices_and_all(small: int, parts: list[list[str]], cut: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spill, "_SMALL", small)
        found = spilled_texts(pa.array(part, pa.string())[cut:] for part in parts)
    expected = [text for part in parts for text in part[cut:]]
    assert found.to_pylist() == list(texts_in(found)) == expected
    assert np.diff(text_bounds(found)).tolist() == [len(text.encode()) for text in expected]


@given(st.lists(st.text(max_size=5), max_size=20), st.integers(1, 6), st.integers(1, 9))
def test_blocks_are_all_texts_in_order_and_small(texts: list[str], most: int, characters: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spill, "_MOST_TEXTS", most)
        patched.setattr(spill, "MOST_CHARACTERS", characters)
        blocks = list(blocks_of(texts))
    assert [text for block in blocks for text in block] == texts
    for block in blocks:
        assert 0 < len(block) <= most
        assert sum(map(len, block[:-1])) < characters


@given(st.lists(st.text(max_size=5), max_size=20), st.integers(0, 5), st.integers(1, 6), st.integers(1, 9))
def test_arrays_cut_small_are_all_texts_in_order_and_are_pickled_alone(
    texts: list[str], skipped: int, most: int, size: int
) -> None:
    given = (
        pa.array([*texts, "x" * 10_000], pa.large_string())[skipped:-1]
        if texts[skipped:]
        else pa.array([], pa.large_string())
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spill, "_MOST_TEXTS", most)
        patched.setattr(spill, "MOST_CHARACTERS", size)
        arrays = list(cut_small(given))
    assert [text for array in arrays for text in array.to_pylist()] == texts[skipped:]
    for array in arrays:
        assert 0 < len(array) <= most
        assert len(array) == 1 or sum(len(text.encode()) for text in array.to_pylist()) <= size
        assert len(pickle.dumps(array)) < 1000


def test_slices_cover_all_rows_and_there_is_always_one() -> None:
    assert list(slices(0)) == [slice(0, 4096)]
    assert [list(range(5000))[block] for block in slices(5000)] == [list(range(4096)), list(range(4096, 5000))]


def test_spilled_arrays_and_texts_take_no_memory(tmp_path: Path) -> None:
    made = run_python("-c", MEASURED, cwd=tmp_path)
    assert not made.returncode, made.stderr
    grown, total, count = map(int, made.stdout.split())
    assert (total, count) == (7 << 26, 64)
    assert grown < 60 * 1024, "KiB; each of the two has 64 MiB"


def test_a_full_disk_is_an_error_before_the_first_write(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        spilled(1 << 22, np.uint8)
