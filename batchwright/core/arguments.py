"""Checks of arguments that Python takes without a word: a text where a list is meant, counts below 1, other choices."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from batchwright.core.errors import InputError

_SHOWN = 40


def check_texts(name: str, texts: Sequence[str]) -> None:
    """Check that an argument is a list of texts; Python would read a single text as a list of its letters.

    Raises:
        InputError: it is a text, or one of its entries is none, or holds what is no letter, as half a pair does.
    """
    if isinstance(texts, str | bytes):
        raise InputError(f"{name} is one text, {texts[:_SHOWN]!r}, where a list of texts is meant; pass [text]")
    _check_list(name, texts, "texts")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}[{place}] is {text!r:.{_SHOWN}}, which is no text; leave it out, or pass its text")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{name}[{place}] holds {text[error.start]!r} at place {error.start}, half a surrogate pair, which is "
                "no text; remove it, or decode the text again"
            ) from None


def check_lists(name: str, lists: Sequence[Sequence[str]], count: int) -> None:
    """Check that an argument is ``count`` lists of texts.

    Raises:
        InputError: it is not.
    """
    _check_list(name, lists, "lists")
    for place, texts in enumerate(lists):
        check_texts(f"{name}[{place}]", texts)
    if len(lists) != count:
        raise InputError(f"{name} has {len(lists)} lists for {count} queries; pass one for each")


def _check_list(name: str, values: object, what: str) -> None:
    """Raise InputError if values have no order, no end, or rows and columns."""
    one_row = hasattr(values, "__getitem__") and getattr(values, "ndim", 1) == 1
    if isinstance(values, str | bytes | Mapping) or not one_row:
        raise InputError(f"{name} is {values!r:.{_SHOWN}}, where a list of {what} is meant; pass a list")


def check_choice(name: str, choice: str, choices: Any) -> None:
    """Check that an argument is one of the ``Literal`` type ``choices``.

    Raises:
        InputError: it is not.
    """
    if choice not in (known := get_args(choices)):
        raise InputError(f"{name} is {choice!r}; pass one of {', '.join(known)}")


def check_count(name: str, count: int, least: int = 1) -> None:
    """Check that an argument that says how many are meant is a whole number of at least ``least``.

    Raises:
        InputError: it is not.
    """
    try:
        whole = -1 if isinstance(count, bool) else operator.index(count)
    except TypeError:
        whole = -1
    if whole < least:
        raise InputError(f"{name} is {count!r}; pass a whole number of at least {least}")


def whole_numbers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return an argument that is whole numbers, such as those of documents.

    Raises:
        InputError: it is not; NumPy would cut fractions, and take truth values for 0 and 1.
    """
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise InputError(f"{name} is {values!r:.{_SHOWN}}; pass a list of whole numbers")
    return given.astype(np.int64)
