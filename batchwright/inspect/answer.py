"""Answers as text or JSON."""

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

from batchwright.inspect.terminal import Terminal


def as_json(found: Any) -> str:
    """Return a dataclass, or a list of them, as JSON in ASCII: no control character is left in it, NaN is null."""
    values = [dataclasses.asdict(each) for each in found] if isinstance(found, list) else dataclasses.asdict(found)
    return json.dumps(_known(values), indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _known(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_known(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def as_text(lines: Callable[[Terminal], list[str]]) -> str:
    """Return what ``lines`` lays out for this process's terminal."""
    return "\n".join(lines(Terminal.of_stdout()))
