"""Makes the next of some items in another thread, while the last one is used."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

T = TypeVar("T")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield ``items``; an error in making one is raised where it would be."""
    rest, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, rest, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, rest, end)
            yield cast(T, item)
