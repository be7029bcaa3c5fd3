"""Parameters of other stages, as far as the report shows them."""

from typing import Any

from pydantic import RootModel


class Loop(RootModel[dict[str, dict[str, Any]]]):
    """A group with one entry for each run of a stage."""


class Names(RootModel[list[str]]):
    """A list with one name for each run of a stage."""
