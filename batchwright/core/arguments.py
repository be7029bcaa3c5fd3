"""Checks of arguments that Python takes without a word: a text where a list of texts is meant, and counts below 1."""

import operator
from collections.abc import Sequence

from batchwright.core.errors import InputError

_SHOWN = 40


def check_texts(name: str, texts: Sequence[str]) -> None:
    """Check that an argument is a list of texts; Python would read a single text as a list of its letters.

    Raises:
        InputError: it is a text, or one of its entries is none.
    """
    if isinstance(texts, str | bytes):
        raise InputError(f"{name} is one text, {texts[:_SHOWN]!r}, where a list of texts is meant; pass [text]")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}[{place}] is {text!r:.{_SHOWN}}, which is no text; leave it out, or pass its text")


def check_count(name: str, count: int) -> None:
    """Check that an argument that says how many to find is a whole number of at least 1.

    Raises:
        InputError: it is not.
    """
    try:
        whole = operator.index(count)
    except TypeError:
        whole = 0
    if whole < 1:
        raise InputError(f"{name} is {count!r}; pass a whole number of at least 1")
