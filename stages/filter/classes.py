"""Group duplicate texts into classes."""

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import text_keys
from batchwright.core.normal_form import normal_form
from stages.filter.near import near_classes


def duplicate_classes(texts: list[str], near_duplicates: float) -> NDArray[np.int32]:
    """Return the class ``(N,)`` of each text.

    Texts share a class if their normal forms are equal or, with ``near_duplicates`` below 1, nearly equal (see
    ``near_classes``). Class numbers do not depend on the order of the texts.
    """
    forms = [normal_form(text) for text in texts]
    words = text_keys(forms).view(np.uint64).reshape(-1, 2)
    _, first, form = np.unique(words, axis=0, return_index=True, return_inverse=True)
    classes = np.arange(len(first), dtype=np.int32)
    if near_duplicates < 1:
        classes = near_classes([forms[row] for row in first], near_duplicates)
    return classes[form.reshape(-1)]
