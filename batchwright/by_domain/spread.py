"""How independent work is spread: what a pipeline or a ``map`` must do, and processes of this machine."""

import ctypes
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from batchwright.core.errors import InputError
from batchwright.core.runtime import beam_is_asked
from batchwright.core.terminal import bar

Item = TypeVar("Item")

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_work: Callable[[Any], None]


class Spread(Protocol):
    """Calls a function for each item, in any order and process; the function leaves files."""

    def __call__(
        self, work: Callable[[Item], None], items: Sequence[Item], *, desc: str, unit: str, processes: int = 1
    ) -> None:
        """Return once all are done; ``desc`` and ``unit`` are for the progress bar. Items can be pickled.

        On this machine, so many ``processes`` do them, each on one core; a single one is this process.
        """


class Map(Protocol):
    """The built-in ``map``, or what does the same in several processes: functions, items and results can be pickled."""

    def __call__(self, work: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]:
        """Return the results in the order of the items."""


def unless_beam(do_parts: Map) -> Map:
    """Return ``do_parts``, or with Beam ``map``: its processes would take longer to begin than to do light work.

    So functions that are given to what is returned need not be picklable; items and results must be.
    """
    return map if beam_is_asked() else do_parts


def on_this_machine(
    work: Callable[[Item], None], items: Sequence[Item], *, desc: str, unit: str, processes: int = 1
) -> None:
    """Do all here.

    Processes are forked: they share what this one has in memory, and begin at once. Only Linux can do that safely with
    the libraries that are used here; elsewhere, this process does all.

    Raises:
        InputError: one of the processes was killed.
    """
    if min(processes, len(items)) > 1 and sys.platform == "linux":
        _forked(work, items, desc, unit, processes)
        return
    for item in bar(items, desc=desc, unit=unit):
        work(item)


def _forked(work: Callable[[Item], None], items: Sequence[Item], desc: str, unit: str, processes: int) -> None:
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(min(processes, len(items)), context, initializer=_begin, initargs=(work,))
    try:
        ended = as_completed([pool.submit(_do, item) for item in items])
        for result in bar(ended, desc=desc, unit=unit, total=len(items)):
            result.result()
    except BrokenProcessPool:
        raise InputError(
            f"{desc}: a process was killed, perhaps because memory was short; "
            "run it again to go on, with a smaller BATCHWRIGHT_WORKERS"
        ) from None
    except BaseException:
        for child in multiprocessing.active_children():  # what they have not finished is done again
            child.kill()
        raise
    finally:
        pool.shutdown()


def _begin(work: Callable[[Any], None]) -> None:
    """Prepare a new process, which ends when the one that started it does, however that ends."""
    global _work
    _work = work
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threadpool_limits(1)


def _do(item: Any) -> None:
    _work(item)
