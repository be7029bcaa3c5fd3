"""Hints for names that are not known."""

import difflib
from collections.abc import Iterable


def nearest(unknown: str, known: Iterable[str]) -> str | None:
    """The known name that ``unknown`` may have meant."""
    return next(iter(difflib.get_close_matches(unknown, list(known), n=1, cutoff=0.5)), None)


def hint(unknown: str, known: Iterable[str]) -> str:
    """The end of a message: the nearest known name, or all of them; empty where there are none."""
    names = list(known)
    if close := nearest(unknown, names):
        return f"; did you mean '{close}'?"
    return f"; known: {', '.join(names)}" if names else ""
