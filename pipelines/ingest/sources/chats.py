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
    if not isinstance(value, list) or any(_speaker(turn) is None for turn in value):
        return False
    return any(_words(turn) is not None for turn in value)  # turns that call tools may say nothing


def first_exchange(chat: Sequence[dict[str, Any]]) -> tuple[object, object]:
    """Return the first turn of a user and the answer before the next, None where there is none.

    What tools say in between, and turns that only call them, are no answers. Later questions refer to what came before,
    so that they are no queries by themselves.
    """
    said = [(_speaker(turn), _words(turn)) for turn in chat]
    turns = itertools.dropwhile(lambda turn: turn[0] not in _ASKS, said)
    _, asked = next(turns, (None, None))
    until = itertools.takewhile(lambda turn: turn[0] not in _ASKS, turns)
    return asked, next((words for speaker, words in until if speaker in _ANSWERS and words not in (None, "")), None)


def has_more(chat: Sequence[dict[str, Any]]) -> bool:
    """Whether a chat goes on after its first exchange."""
    return sum(_speaker(turn) in _ASKS for turn in chat) > 1


def _speaker(turn: object) -> str | None:
    if not isinstance(turn, dict):
        return None
    found = next((turn[who] for who, _ in _KEYS if who in turn), None)
    return found.strip().casefold() if isinstance(found, str) else None


def _words(turn: dict[str, Any]) -> object:
    """What is said, joined if it is a list of parts that are all texts."""
    said = next((turn[what] for who, what in _KEYS if who in turn and what in turn), None)
    if isinstance(said, list) and said and all(isinstance(part, dict) and part.get("type") == "text" for part in said):
        texts = [part.get("text") for part in said]
        return " ".join(texts) if all(isinstance(text, str) for text in texts) else said
    return said
