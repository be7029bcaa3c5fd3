"""JSON of strangers."""

import json
from typing import Any


class RepeatedKeyError(ValueError):
    """A key is there twice."""


def parse(text: str) -> Any:
    """Parse one JSON value. Python itself would take the last of two values for a key, without a word.

    Raises:
        RepeatedKeyError: a key is there twice.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKeyError("a key is there twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
