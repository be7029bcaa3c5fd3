"""Find near-duplicate texts: MinHash bands propose candidates, each is verified, and matches form tight classes."""

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from batchwright.core.bar import bar
from batchwright.core.fingerprint import text_keys
from batchwright.core.spill import spilled, text_bounds
from stages.filter.shingles import cuts, jaccard, shingles

BANDS, HASHES = 8, 8
"""The size of a text's MinHash sketch. A band's key combines as many of the band's hashes as ``MISSED`` allows."""
MISSED = 1e-3
"""Accepted share of pairs right at the threshold that are missed because they share no band."""
NEIGHBOURS = 4
"""How many of the next texts with the same band key each text is compared with, unless they are already joined."""
DEVIATIONS = 3
"""Candidates are compared exactly unless their sketches' similarity is this many deviations below the threshold."""
ROUNDS = 8
_NUMBER = re.compile(r"\d(?<!\w\d)\d*+(?!\w)")  # \b\d+\b, but begins with what can be searched for fast
_COMPARED_TOGETHER = 1 << 16


def near_classes(texts: pa.LargeStringArray, threshold: float) -> NDArray[np.int32]:
    """Return the class ``(n,)`` of each of ``texts``, which are all different.

    Two texts are alike if their shingles have a Jaccard similarity of at least ``threshold``. Texts share a class if
    a chain of such pairs joins them and each is at most two such steps from the first text of the class. Apart from
    sorting, the cost is linear in the number of characters.
    """
    joined = np.arange(len(texts), dtype=np.int32)
    if len(texts) < 2:
        return joined
    keys, sketches = _sketch(texts, threshold)
    hashes = sketches.shape[1]
    least = threshold * hashes - DEVIATIONS * math.sqrt(threshold * (1 - threshold) * hashes)
    refused = np.empty(0, np.int64)
    for left, right in _candidates(keys):
        apart = np.flatnonzero(joined[left] != joined[right])
        likely = apart[_agreeing(sketches, left[apart], right[apart]) >= least]
        if not len(likely):  # nearly always the case in small domains, of which there may be thousands
            continue
        left, right = np.minimum(left[likely], right[likely]), np.maximum(left[likely], right[likely])
        pairs = np.setdiff1d(left * len(texts) + right, refused)
        left, right = np.divmod(pairs, len(texts))
        alike = jaccard(texts, left, right) >= threshold
        refused = np.union1d(refused, pairs[~alike])
        joined = _join(joined, left[alike], right[alike])
    return _tighten(texts, joined, 2 * threshold - 1)


def _sketch(texts: pa.LargeStringArray, threshold: float) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return band keys ``(BANDS, n)`` and the low bytes of each text's minimum hashes, ``(n, BANDS * HASHES)``."""
    share = 1 - MISSED ** (1 / BANDS)
    width = min(max(1, math.floor(math.log(share) / math.log(threshold))), HASHES)
    generator = np.random.default_rng(0)
    salts = generator.integers(1 << 32, size=(BANDS, HASHES), dtype=np.uint32)
    odds = generator.integers(1 << 31, size=(BANDS, HASHES), dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    keys = spilled((BANDS, len(texts)), np.uint64)
    sketches = spilled((len(texts), BANDS * HASHES), np.uint8)
    for block in bar(list(cuts(np.diff(text_bounds(texts)))), desc="duplicates", unit="block"):
        some = texts[block].to_pylist()
        keys[:, block] = _numbers(some)
        hashes, starts = shingles(some)
        for band, number in np.ndindex(BANDS, HASHES):
            least = np.minimum.reduceat((hashes ^ salts[band, number]) * odds[band, number], starts[:-1])
            sketches[block, band * HASHES + number] = least & np.uint32(0xFF)
            if number < width:
                keys[band, block] = keys[band, block] * np.uint64(0x9E3779B97F4A7C15) + least
    return keys, sketches


def _numbers(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a key of the numbers in each text: changing type 1 to type 2, or 2018 to 2019, is not a small edit."""
    listed = (" ".join(sorted(_NUMBER.findall(text))) for text in texts)
    keys: NDArray[np.uint64] = text_keys(listed).view(np.uint64)[::2].copy()
    return keys


def _candidates(keys: NDArray[np.uint64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield pairs of texts that share a band's key, if they are close when sorted by the keys of the next bands.

    The closest pairs of a band come first.
    """
    for band, own in enumerate(keys):
        crowd = _crowd(own)
        order = crowd[np.lexsort([keys[number % BANDS, crowd] for number in range(band + BANDS - 1, band - 1, -1)])]
        for step in range(1, NEIGHBOURS + 1):
            left, right = order[:-step], order[step:]
            shared = own[left] == own[right]
            yield left[shared], right[shared]


def _crowd(own: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return, in ascending order, which texts have a key that another one has, too."""
    order = np.argsort(own)
    same = np.diff(own[order]) == 0
    return np.sort(order[np.append(same, False) | np.insert(same, 0, False)])


def _agreeing(
    sketches: NDArray[np.uint8], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many bytes of their sketches two texts share, ``(n,)``."""
    counts = np.empty(len(left), np.int64)
    for start in range(0, len(left), _COMPARED_TOGETHER):
        block = slice(start, start + _COMPARED_TOGETHER)
        counts[block] = (sketches[left[block]] == sketches[right[block]]).sum(axis=1)
    return counts


def _join(joined: NDArray[np.int32], left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the components after joining the pairs ``left``, ``right`` as well."""
    count = int(joined.max()) + 1
    edges = coo_matrix((np.ones(len(left), bool), (joined[left], joined[right])), (count, count))
    component: NDArray[np.int32] = connected_components(edges, directed=False)[1]
    return component[joined]


def _tighten(texts: pa.LargeStringArray, joined: NDArray[np.int32], least: float) -> NDArray[np.int32]:
    """Split components into classes in which each text has a similarity of at least ``least`` to the first.

    This keeps chains short. 1 - Jaccard is a metric, so two steps within the threshold stay within ``least``. Texts too
    far from the first of their component form a new component with its own first text. Texts that remain after
    ``ROUNDS`` rounds become classes of their own.
    """
    classes = np.full(len(texts), -1, dtype=np.int32)
    rest = np.arange(len(texts), dtype=np.int32)
    count = 0
    for _ in range(ROUNDS):
        first, group = _groups(joined[rest])
        leader = rest[first][group]
        near = rest == leader
        near[~near] = jaccard(texts, rest[~near], leader[~near]) >= least
        classes[rest[near]] = count + group[near]
        count += len(first)
        rest = rest[~near]
    classes[rest] = count + np.arange(len(rest))
    return _groups(classes)[1]


def _groups(labels: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return where each label is first, in the order of labels, and the place of each one's label in that order.

    As ``np.unique`` does, but without sorting, since labels are small numbers.
    """
    first = np.full(labels.max(initial=-1) + 1, -1, np.int32)
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1, dtype=np.int32)
    place = np.cumsum(first >= 0, dtype=np.int32) - 1
    return first[first >= 0], place[labels]
