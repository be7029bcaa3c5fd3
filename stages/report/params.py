"""Parameters of other stages that the report needs."""

from typing import Any

from pydantic import RootModel


class Loop(RootModel[dict[str, dict[str, Any]]]):
    """A parameter group with one entry for each run of a stage."""


class Names(RootModel[list[str]]):
    """A list with one name for each run of a stage."""
