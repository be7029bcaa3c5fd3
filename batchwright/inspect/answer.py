"""Answers as text or JSON."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from batchwright.inspect.terminal import Terminal


def as_json(found: Any) -> str:
    """Return a dataclass, or a list of them, as JSON in ASCII: no control character is left in it."""
    values = [dataclasses.asdict(each) for each in found] if isinstance(found, list) else dataclasses.asdict(found)
    return json.dumps(values, indent=2).replace("\x7f", "\\u007f")


def as_text(lines: Callable[[Terminal], list[str]]) -> str:
    """Return what ``lines`` lays out for this process's terminal."""
    return "\n".join(lines(Terminal.of_stdout()))
