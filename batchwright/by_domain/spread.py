"""How independent work is spread: the interface of what a pipeline does, and threads of this process."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from threadpoolctl import threadpool_limits

from batchwright.core.bar import bar

Item = TypeVar("Item")


class Spread(Protocol):
    """Calls a function for each item, in any order, thread and process; the function leaves files."""

    def __call__(
        self,
        work: Callable[[Item], None],
        items: Sequence[Item],
        *,
        desc: str,
        unit: str,
        threads: int | None = None,
    ) -> None:
        """Return once all are done; ``desc`` and ``unit`` are for the progress bar. All can be pickled.

        In this process, so many ``threads`` do them, each on one core, or if None one on all cores.
        """


def in_process(
    work: Callable[[Item], None], items: Sequence[Item], *, desc: str, unit: str, threads: int | None = None
) -> None:
    """Do all in this process."""
    if threads is None or not items:
        for item in bar(items, desc=desc, unit=unit):
            work(item)
        return
    with ThreadPoolExecutor(min(threads, len(items)), initializer=partial(threadpool_limits, 1)) as pool:
        try:
            for _ in bar(pool.map(work, items), desc=desc, unit=unit, total=len(items)):
                pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
