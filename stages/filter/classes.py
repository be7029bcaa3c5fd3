"""Group duplicate texts into classes."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.core.spill import SpilledRows, SpilledTexts, cut_small, first_in, slices, sort_keys, spilled_texts
from stages.filter.near import near_classes
from stages.filter.sketches import KEY, SKETCH, forms_and_keys, sketch


def duplicate_classes(texts: Iterable[Iterable[str]], near_duplicates: float, do_parts: Map = map) -> NDArray[np.int32]:
    """Return the class ``(N,)`` of each of ``texts``, which come in parts, of which a few are in memory at a time.

    Texts share a class if their normal forms are equal or, with ``near_duplicates`` below 1, nearly equal (see
    ``near_classes``). Class numbers do not depend on the order of the texts.
    """
    every_form, every_key = SpilledTexts(), SpilledRows(KEY)
    for some_forms, some_keys in do_parts(forms_and_keys, texts):
        every_form.add(some_forms)
        every_key.add(some_keys)
    form, first = _equal_classes(every_key.array())
    if near_duplicates == 1:
        return form
    forms = every_form.array()
    forms = spilled_texts(forms.take(pa.array(first[block])) for block in slices(len(first)))
    sketches = SpilledRows(SKETCH)
    for some_sketches in do_parts(partial(sketch, near_duplicates), cut_small(forms)):
        sketches.add(some_sketches)
    return near_classes(forms, sketches.array(), near_duplicates)[form]


def _equal_classes(keys: NDArray[np.void]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the class of each of n keys, equal ones in one, and the first key of each class."""
    words = keys.view(np.uint64).reshape(-1, 2).T
    order = sort_keys(words)
    first = first_in(words, order)
    classes = np.empty(len(order), np.int32)
    classes[order] = np.cumsum(first, dtype=np.int32) - 1
    return classes, order[first]
