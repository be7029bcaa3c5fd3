"""When two texts count as the same."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from batchwright.core.arguments import check_texts

_SIGNS = "#%&*/@\\"  # punctuation in Unicode, but C# is not C, and 5 % is not 5
_LAST = 0x1FFFF  # the planes after it hold ideographs and code points for private use, but no punctuation
_MARKS = re.escape(
    "".join(
        mark for mark in map(chr, range(_LAST + 1)) if unicodedata.category(mark).startswith("P") and mark not in _SIGNS
    )
)
_RUN = re.compile(f"[{_MARKS}]+")
_BLANK, _MARK, _OTHER, _END = b" -a\n"
_ASCII = [chr(code) for code in range(128)]
_KINDS = bytes(_MARK if _RUN.match(sign) else _BLANK if sign.isspace() else _OTHER for sign in _ASCII).ljust(256)
_UNMARKED = bytes(ord(sign.lower()) if _KINDS[ord(sign)] == _OTHER else _BLANK for sign in _ASCII).ljust(256)
_ALONE = re.compile(b" -+(?= )")


def normal_form(text: str) -> str:
    """Normalise a text, ignoring case, Unicode form, white space and punctuation attached to words.

    Punctuation that stands alone is kept: ``cd -`` differs from ``cd``, and ``!!!`` from ``???``.
    """
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return " ".join([word if word.isalnum() else _without_marks(word) for word in words])


def normal_forms(texts: Sequence[str]) -> list[str]:
    """Return the normal forms of texts: of those in ASCII together, several times as fast.

    Raises:
        InputError: ``texts`` is no list of texts.
    """
    check_texts("texts", texts)
    in_ascii = iter(_ascii_forms([text for text in texts if text.isascii()]))
    return [next(in_ascii) if text.isascii() else normal_form(text) for text in texts]


def _ascii_forms(texts: Sequence[str]) -> list[str]:
    joined = "\n".join(["", *texts, ""]).encode("ascii")
    unmarked = bytearray(joined.translate(_UNMARKED))
    for alone in _ALONE.finditer(joined.translate(_KINDS)):
        unmarked[alone.start() + 1 : alone.end()] = joined[alone.start() + 1 : alone.end()]
    letters = np.frombuffer(unmarked, np.uint8)
    letters[np.cumsum([0, *(len(text) + 1 for text in texts)])] = _END
    blank = letters == _BLANK
    forms = letters[np.append(True, ~(blank[1:] & blank[:-1]))].tobytes().decode("ascii").split("\n")
    return [form.strip(" ") for form in forms[1:-1]]


@lru_cache(maxsize=1 << 16)  # most words with marks have been seen before, and looking for marks is slow
def _without_marks(word: str) -> str:
    return " ".join(_RUN.sub(" ", word).split()) or word
