"""What the report needs to know of other stages' parameters."""

from typing import Any

from pydantic import RootModel


class Loop(RootModel[dict[str, dict[str, Any]]]):
    """A group that stages loop over, ``variants`` or ``pretrain``."""


class Names(RootModel[list[str]]):
    """Variants that a stage is run for."""
