"""Progress bars on stderr: rate and time left of what takes long. A bar within another one disappears at its end.

tqdm is imported when it is needed, since commands that only look take less time than its import.
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

T = TypeVar("T")


def bar(items: Iterable[T], *, desc: str, unit: str, total: int | None = None) -> "tqdm[T]":
    """Iterate over ``items`` and show how many are done, from two seconds on."""
    return _tqdm()(items, desc=desc, unit=unit, total=total, delay=2, miniters=1, mininterval=_seconds(), leave=None)


def counter(
    total: int,
    *,
    desc: str,
    unit: str,
    initial: int = 0,
    delay: float = 2,
    disable: bool = False,
    file: TextIO | None = None,
) -> "tqdm[NoReturn]":
    """Show how many of ``total`` are done, from ``delay`` seconds on; its ``update`` counts them."""
    return _tqdm()(
        desc=desc,
        unit=unit,
        total=total,
        initial=initial,
        delay=delay,
        miniters=1,
        mininterval=_seconds(),
        leave=None,
        disable=disable,
        file=file,
    )


def _tqdm() -> "type[tqdm[Any]]":
    """tqdm without its thread, which may hold a lock while the process is forked."""
    from tqdm import tqdm

    tqdm.monitor_interval = 0
    return tqdm


def _seconds() -> float:
    """How often a bar is drawn: in logs, and from Ray's workers, each time is a new line."""
    return 2 if sys.stderr.isatty() else 30
