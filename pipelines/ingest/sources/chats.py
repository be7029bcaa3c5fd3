"""Chats: lists of turns, each an object that says who speaks and what, as data for language models have them."""

import itertools
from collections.abc import Sequence
from typing import Any, TypeGuard

_KEYS = (("role", "content"), ("from", "value"))
"""Who speaks, and what, as OpenAI and ShareGPT name them."""
_ASKS = ("user", "human")
_ANSWERS = ("assistant", "gpt", "model", "bot")


def is_chat(value: object) -> TypeGuard[list[dict[str, Any]]]:
    """Whether a value is a list of turns."""
    return isinstance(value, list) and bool(value) and all(_speaker(turn) is not None for turn in value)


def first_exchange(chat: Sequence[dict[str, Any]]) -> tuple[object, object]:
    """Return the first turn of a user and the answer after it, or None twice if nothing is answered.

    Later questions refer to what came before, so that they are no queries by themselves.
    """
    return next(iter(_exchanges(chat)), (None, None))


def has_more(chat: Sequence[dict[str, Any]]) -> bool:
    """Whether a chat goes on after its first exchange."""
    return len(_exchanges(chat)) > 1


def _exchanges(chat: Sequence[dict[str, Any]]) -> list[tuple[object, object]]:
    said = [(_speaker(turn), _words(turn)) for turn in chat]
    return [
        (asked, answer)
        for (one, asked), (other, answer) in itertools.pairwise(said)
        if one in _ASKS and other in _ANSWERS
    ]


def _speaker(turn: object) -> str | None:
    if not isinstance(turn, dict):
        return None
    found = next((turn[who] for who, what in _KEYS if who in turn and what in turn), None)
    return found.strip().casefold() if isinstance(found, str) else None


def _words(turn: dict[str, Any]) -> object:
    return next(turn[what] for who, what in _KEYS if who in turn and what in turn)
