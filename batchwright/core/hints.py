"""Suggestions for unknown names."""

import difflib
from collections.abc import Iterable


def nearest(unknown: str, known: Iterable[str]) -> str | None:
    """The known name closest to ``unknown``, or None if none is close."""
    return next(iter(difflib.get_close_matches(unknown, list(known), n=1, cutoff=0.5)), None)


def hint(unknown: str, known: Iterable[str]) -> str:
    """The end of an error message: the closest known name, otherwise all known names; empty if there are none."""
    names = list(known)
    if close := nearest(unknown, names):
        return f"; did you mean '{close}'?"
    return f"; known: {', '.join(names)}" if names else ""
