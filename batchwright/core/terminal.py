"""What people see in the terminal: messages that cannot control it, hints for unknown names, and progress bars.

tqdm is imported when it is needed, since commands that only look take less time than its import."""

import difflib
import io
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

from batchwright.core.runtime import scratch_root

if TYPE_CHECKING:
    from tqdm import tqdm


MOST = 500
TOLD = 10
"""So many warnings, or reasons, of one kind are told; further ones are counted."""


def safe(text: str) -> str:
    """Return a text that cannot control a terminal: characters that are not printable are escaped, but line ends."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def say(text: str) -> None:
    """Print a text, with ``?`` for what the encoding of stdout lacks; a reader that has seen enough is no error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        print(text, flush=True)
    except BrokenPipeError:  # such as head; Python would complain when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def warn(program: str, warnings: Iterable[str]) -> None:
    """Print warnings of one kind, which cannot control the terminal: ``TOLD`` of them, and how many more there are."""
    told = list(warnings)
    more = len(told) - TOLD
    for warning in [*told[:TOLD], *([f"and {more:,} more like the last one"] if more > 0 else [])]:
        print(f"{program}: warning: {safe(warning)}", file=sys.stderr)


def short(text: str, program: str) -> str:
    """Return a text as ``safe`` has it, cut to ``MOST`` characters; all of a longer one goes to a scratch file."""
    text = safe(text)
    if len(text) <= MOST:
        return text
    file = scratch_root() / "messages" / f"{program.replace('/', '-')[:40]}.txt"
    rest = f"... (all of it is in {file})"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    except OSError:  # such as a full disk: the beginning must do
        rest = "..."
    return _cut(text, MOST - len(rest)) + rest


def _cut(text: str, length: int) -> str:
    """Cut between lines, or between words, if that leaves most of the text."""
    start = text[: max(length, 0)]
    for end in ("\n", " "):
        if (place := start.rfind(end)) > length // 2:
            return start[: place + 1]
    return start


def shown(text: str, most: int = 60) -> str:
    """Return a text in quotation marks, on one line, cut to ``most`` characters."""
    line = safe(text[:most].replace("\n", "\\n"))
    return f"'{line}{'…' if len(text) > most else ''}'"


def duration(seconds: float) -> str:
    """Say roughly how long something takes."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if (count := round(seconds / length)) > 1 or (count and length == 60):
            return f"{count:,} {unit}{'s' * (count > 1)}"
    return f"{max(round(seconds / 10), 1) * 10} seconds"


def nearest(unknown: str, known: Iterable[str]) -> str | None:
    """The known name closest to ``unknown``, or None if none is close."""
    return next(iter(difflib.get_close_matches(unknown, list(known), n=1, cutoff=0.5)), None)


def hint(unknown: str, known: Iterable[str]) -> str:
    """The end of an error message: the closest known name, otherwise all known names; empty if there are none."""
    names = list(known)
    if close := nearest(unknown, names):
        return f"; did you mean '{close}'?"
    return f"; known: {', '.join(names)}" if names else ""


T = TypeVar("T")


def bar(items: Iterable[T], *, desc: str, unit: str, total: int | None = None) -> "tqdm[T]":
    """Iterate over ``items`` and show how many are done, from two seconds on."""
    return bar_class()(
        items, desc=desc, unit=unit, total=total, delay=2, miniters=1, mininterval=_seconds(), leave=None
    )


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
    return bar_class()(
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


@cache
def bar_class() -> "type[tqdm[Any]]":
    """tqdm without its thread, which may hold a lock while the process is forked; a signal leaves no traceback."""
    from tqdm import tqdm

    tqdm.monitor_interval = 0

    class Bar(tqdm):  # type: ignore[type-arg]
        def __del__(self) -> None:
            with suppress(AttributeError):  # a signal may have ended the constructor halfway
                super().__del__()

    return Bar


def _seconds() -> float:
    """How often a bar is drawn: in logs, and from Ray's workers, each time is a new line."""
    return 2 if sys.stderr.isatty() else 30
