"""Classes of duplicate texts: equal ones, and near-duplicates.

Bands of MinHash sketches propose candidates, each is verified, and matches form tight classes.
"""

import math
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from batchwright.by_domain.spread import Map
from batchwright.core.spill import SpilledRows, SpilledTexts, cut_small, first_in, slices, sort_keys, spilled_texts
from stages.negatives.sketches import KEY, SKETCH, forms_and_keys, jaccard, sketch

NEIGHBOURS = 4
"""How many of the next texts with the same band key each text is compared with, unless they are already joined."""
DEVIATIONS = 3
"""Candidates are compared exactly unless their sketches' similarity is this many deviations below the threshold."""
ROUNDS = 8
"""In which joined texts are divided into classes, at most."""
_COMPARED_TOGETHER = 1 << 16


def duplicate_classes(texts: Iterable[Iterable[str]], near_duplicates: float, do_parts: Map = map) -> NDArray[np.int32]:
    """Return the class ``(N,)`` of each of ``texts``, which come in parts, of which a few are in memory at a time.

    Texts share a class if their normal forms are equal or, with ``near_duplicates`` below 1, nearly equal (see
    ``near_classes``). Class numbers do not depend on the order of the texts.
    """
    spilled_forms, spilled_keys = SpilledTexts(), SpilledRows(KEY)
    for forms_of_part, keys_of_part in do_parts(forms_and_keys, texts):
        spilled_forms.add(forms_of_part)
        spilled_keys.add(keys_of_part)
    form, first = _equal_classes(spilled_keys.array())
    if near_duplicates == 1:
        return form
    forms = spilled_forms.array()
    forms = spilled_texts(forms.take(pa.array(first[block])) for block in slices(len(first)))
    sketches = SpilledRows(SKETCH)
    for sketches_of_part in do_parts(partial(sketch, near_duplicates), cut_small(forms)):
        sketches.add(sketches_of_part)
    return near_classes(forms, sketches.array(), near_duplicates)[form]


def _equal_classes(keys: NDArray[np.void]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the class of each of n keys, equal ones in one, and the first key of each class."""
    words = keys.view(np.uint64).reshape(-1, 2).T
    order = sort_keys(words)
    first = first_in(words, order)
    classes = np.empty(len(order), np.int32)
    classes[order] = np.cumsum(first, dtype=np.int32) - 1
    return classes, order[first]


def near_classes(texts: pa.LargeStringArray, sketches: NDArray[np.void], threshold: float) -> NDArray[np.int32]:
    """Return the class ``(n,)`` of each of ``texts``, which are all different, given a ``SKETCH`` of each.

    Two texts are alike if their shingles have a Jaccard similarity of at least ``threshold``. Texts share a class if
    a chain of such pairs joins them and each is at most two such steps from the first text of the class. Apart from
    sorting, the cost is linear in the number of characters.
    """
    joined = np.arange(len(texts), dtype=np.int32)
    if len(texts) < 2:
        return joined
    hashes = sketches["hashes"].shape[1]
    least = threshold * hashes - DEVIATIONS * math.sqrt(threshold * (1 - threshold) * hashes)
    refused = np.empty(0, np.int64)
    for left, right in _candidates(sketches["bands"]):
        apart = np.flatnonzero(joined[left] != joined[right])
        likely = apart[_agreeing(sketches["hashes"], left[apart], right[apart]) >= least]
        if not len(likely):
            continue
        left, right = np.minimum(left[likely], right[likely]), np.maximum(left[likely], right[likely])
        pairs = left * len(texts) + right
        fresh = ~np.isin(pairs, refused)
        left, right, pairs = left[fresh], right[fresh], pairs[fresh]
        alike = jaccard(texts, left, right) >= threshold
        refused = np.concatenate([refused, pairs[~alike]])
        joined = _join(joined, left[alike], right[alike])
    return _tighten(texts, joined, 2 * threshold - 1)


def _candidates(keys: NDArray[np.uint64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield pairs of texts that share a band's key ``(n, BANDS)`` and are close if sorted by the next bands' keys.

    The closest pairs of a band come first.
    """
    bands = keys.shape[1]
    for band in range(bands):
        of_band = keys[:, band]
        crowd = _crowd(of_band)
        if not len(crowd):  # nearly always the case in small domains, of which there may be thousands
            continue
        order = crowd[np.lexsort([keys[crowd, number % bands] for number in range(band + bands - 1, band - 1, -1)])]
        for step in range(1, NEIGHBOURS + 1):
            left, right = order[:-step], order[step:]
            shared = of_band[left] == of_band[right]
            yield left[shared], right[shared]


def _crowd(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return, in ascending order, which texts have a key that another one has, too."""
    order = np.argsort(keys)
    same = keys[order[1:]] == keys[order[:-1]]
    if not same.any():
        return order[:0]
    return np.sort(order[np.append(same, False) | np.insert(same, 0, False)])


def _agreeing(sketches: NDArray[np.uint8], left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
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
        if not len(rest):
            break
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
