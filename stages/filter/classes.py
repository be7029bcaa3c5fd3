"""Group duplicate texts into classes."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.normal_form import normal_form
from batchwright.core.spill import arrays_of, slices, spilled_texts, texts_in
from batchwright.formats.keys import first_in, keys_of, sort_keys
from stages.filter.near import near_classes


def duplicate_classes(texts: Iterable[str], near_duplicates: float) -> NDArray[np.int32]:
    """Return the class ``(N,)`` of each text; some thousands of texts are in memory at a time.

    Texts share a class if their normal forms are equal or, with ``near_duplicates`` below 1, nearly equal (see
    ``near_classes``). Class numbers do not depend on the order of the texts.
    """
    forms = spilled_texts(arrays_of(map(normal_form, texts)))
    form, first = _equal_classes(forms)
    if near_duplicates == 1:
        return form
    forms = spilled_texts(forms.take(pa.array(first[block])) for block in slices(len(first)))
    return near_classes(forms, near_duplicates)[form]


def _equal_classes(forms: pa.LargeStringArray) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the class of each of n texts, equal ones in one, and the first text of each class."""
    words = keys_of(texts_in(forms)).view(np.uint64).reshape(-1, 2).T
    order = sort_keys(words)
    first = first_in(words, order)
    classes = np.empty(len(order), np.int32)
    classes[order] = np.cumsum(first, dtype=np.int32) - 1
    return classes, order[first]
