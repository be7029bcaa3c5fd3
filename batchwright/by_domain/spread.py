"""How independent work is spread over processes: the interface of what a pipeline does, and none at all."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from batchwright.core.bar import bar

Item = TypeVar("Item")


class Spread(Protocol):
    """Calls a function for each item, in any order and process; the function leaves files."""

    def __call__(self, work: Callable[[Item], None], items: Sequence[Item], *, desc: str, unit: str) -> None:
        """Return once all are done; ``desc`` and ``unit`` are for the progress bar. All can be pickled."""


def one_by_one(work: Callable[[Item], None], items: Sequence[Item], *, desc: str, unit: str) -> None:
    """Do all in this process."""
    for item in bar(items, desc=desc, unit=unit):
        work(item)
