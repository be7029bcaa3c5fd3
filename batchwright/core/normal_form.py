"""When two texts count as the same."""

import re
import unicodedata
from functools import lru_cache

_SIGNS = "#%&*/@\\"  # punctuation in Unicode, but C# is not C, and 5 % is not 5
_LAST = 0x1FFFF  # the planes after it hold ideographs and code points for private use, but no punctuation
_MARKS = re.escape(
    "".join(
        mark for mark in map(chr, range(_LAST + 1)) if unicodedata.category(mark).startswith("P") and mark not in _SIGNS
    )
)
_RUN = re.compile(f"[{_MARKS}]+")


def normal_form(text: str) -> str:
    """Normalise a text, ignoring case, Unicode form, white space and punctuation attached to words.

    Punctuation that stands alone is kept: ``cd -`` differs from ``cd``, and ``!!!`` from ``???``.
    """
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return " ".join([word if word.isalnum() else _without_marks(word) for word in words])


@lru_cache(maxsize=1 << 16)  # most words with marks have been seen before, and looking for marks is slow
def _without_marks(word: str) -> str:
    return " ".join(_RUN.sub(" ", word).split()) or word
