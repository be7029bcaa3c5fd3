"""Texts as sets of hashed shingles, and the Jaccard similarity of such sets."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.spill import text_bounds

WIDTH = 5
_BITS = 30  # the rare collisions do no harm
_BLOCK_BYTES = 1 << 16  # what is made of them stays in cache
_generator = np.random.default_rng(0)
_ODD = _generator.integers(1 << 62, size=WIDTH, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def shingles(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Hash all runs of ``WIDTH`` characters in each text.

    Each text gets a space at both ends and is padded with spaces to ``WIDTH`` characters.

    Returns:
        The hashes, text after text, and the offsets at which each text's hashes start, followed by their total number.
    """
    padded = [f" {text} ".ljust(WIDTH) for text in texts]
    ends = np.cumsum([len(text) for text in padded])
    characters = np.frombuffer("".join(padded).encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    mixed = np.zeros(len(characters) - WIDTH + 1, dtype=np.uint64)
    for place, odd in enumerate(_ODD):
        mixed += characters[place : place + len(mixed)] * odd
    inside = np.ones(len(mixed), dtype=bool)
    inside[(ends[:-1, None] - np.arange(1, WIDTH)).ravel()] = False  # runs that span two texts
    hashes: NDArray[np.uint32] = (mixed[inside] >> np.uint64(64 - _BITS)).astype(np.uint32)
    starts = np.concatenate([[0], ends - (WIDTH - 1) * np.arange(1, len(texts) + 1)])
    return hashes, starts


def jaccard(texts: pa.LargeStringArray, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the Jaccard similarity of the shingles of ``texts[left[i]]`` and ``texts[right[i]]``, ``(n,)``."""
    bounds = text_bounds(texts)
    found = [np.empty(0)]
    for block in cuts(bounds[left + 1] - bounds[left] + bounds[right + 1] - bounds[right]):
        used, places = np.unique(np.stack([left[block], right[block]]), return_inverse=True)
        sets = _sets(texts.take(pa.array(used)).to_pylist())
        sizes = np.array([len(each) for each in sets])
        of_left, of_right = places.reshape(2, -1)
        pairs = zip(of_left.tolist(), of_right.tolist(), strict=True)
        both = np.array([_common(sets[one], sets[other]) for one, other in pairs])
        found.append(both / (sizes[of_left] + sizes[of_right] - both))
    return np.concatenate(found)


def _sets(texts: Sequence[str]) -> list[NDArray[np.uint32]]:
    """Return the different hashes of each text, in ascending order."""
    hashes, starts = shingles(texts)
    for start, end in pairwise(starts.tolist()):
        hashes[start:end].sort()
    first = np.append(True, hashes[1:] != hashes[:-1])
    first[starts[:-1]] = True
    sizes = np.add.reduceat(first, starts[:-1], dtype=np.int64)
    return np.split(hashes[first], np.cumsum(sizes)[:-1])


def _common(left: NDArray[np.uint32], right: NDArray[np.uint32]) -> int:
    """Count the numbers that two sets share."""
    both = np.concatenate([left, right])
    both.sort()
    return int(np.count_nonzero(both[1:] == both[:-1]))


def cuts(sizes: NDArray[np.int64]) -> Iterator[slice]:
    """Cut texts of so many bytes into slices of about 65,000 bytes each."""
    block = (np.cumsum(sizes) - sizes) // _BLOCK_BYTES
    edges = np.flatnonzero(np.diff(block, prepend=-1, append=-1)) if len(block) else np.empty(0, np.int64)
    return (slice(int(start), int(end)) for start, end in pairwise(edges))
