"""Group duplicate texts into classes."""

import re
import sys
import unicodedata

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import text_keys
from stages.filter.near import near_classes

_SIGNS = "#%&*/@\\"  # punctuation in Unicode, but C# is not C, and 5 % is not 5
_MARKS = re.escape(
    "".join(
        mark
        for mark in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(mark).startswith("P") and mark not in _SIGNS
    )
)
_RUN = re.compile(f"[{_MARKS}]+")


def normal_form(text: str) -> str:
    """Normalise a text, ignoring case, Unicode form, white space and punctuation attached to words.

    Punctuation that stands alone is kept: ``cd -`` differs from ``cd``, and ``!!!`` from ``???``.
    """
    words: list[str] = []
    for word in unicodedata.normalize("NFKC", text).casefold().split():
        words += [word] if word.isalnum() else _RUN.sub(" ", word).split() or [word]
    return " ".join(words)


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
