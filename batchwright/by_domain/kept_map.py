"""Parts of the work on one domain, done in any process and kept until the domain is finished."""

import hashlib
import itertools
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from batchwright.by_domain.spread import Spread
from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.runtime import beam_is_asked

_DIGEST = hashlib.sha256().digest_size


class Map(Protocol):
    """The built-in ``map``, or what does the same in several processes: functions, items and results can be pickled."""

    def __call__(self, work: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]:
        """Return the results in the order of the items."""


def unless_beam(do_parts: Map) -> Map:
    """Return ``do_parts``, or with Beam ``map``: its processes would take longer to begin than to do light work.

    So functions that are given to what is returned need not be picklable; items and results must be.
    """
    return map if beam_is_asked() else do_parts


class KeptMap:
    """A ``Map`` that keeps each result in a file of ``folder``, so that a killed run goes on from there.

    The calls are numbered: whoever goes on must make the same calls with the same items. With Beam they are others
    (``unless_beam``), which are kept apart.
    """

    def __init__(self, folder: Path, spread: Spread, desc: str) -> None:
        own = folder / "beam" if beam_is_asked() else folder
        self._folder, self._spread, self._desc = own.resolve(), spread, desc
        self._calls = itertools.count(1)

    def __call__(self, work: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """Do what is not kept yet, and return all results."""
        call = next(self._calls)
        folder = self._folder / str(call)
        folder.mkdir(parents=True, exist_ok=True)
        results, waiting = [], []
        for number, item in enumerate(items):
            results.append(folder / str(number))
            if _content(results[-1]) is None:
                if results[-1].exists():
                    print(f"warning: {results[-1]}: damaged; this part of the work is done again", file=sys.stderr)
                _save(_item(results[-1]), item)
                waiting.append(results[-1])
        self._spread(partial(_do, work), waiting, desc=f"{self._desc}, step {call}", unit="part")
        return map(_load, results)


def _do(work: Callable[[Any], Any], result: Path) -> None:
    _save(result, work(_load(_item(result))))
    _item(result).unlink()


def _item(result: Path) -> Path:
    return result.with_suffix(".item")


def _save(file: Path, value: object) -> None:
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    with atomic_file(file, durable=False) as temporary, temporary.open("wb") as handle:
        handle.write(hashlib.sha256(content).digest())
        handle.write(content)


def _load(file: Path) -> Any:
    content = _content(file)
    if content is None:
        raise InputError(f"{file}: missing or damaged; all processes must share this folder. Run the stage again")
    return pickle.loads(content)


def _content(file: Path) -> memoryview | None:
    """Return what ``_save`` pickled, or None if it is missing or damaged."""
    try:
        found = memoryview(file.read_bytes())
    except OSError:
        return None
    return found[_DIGEST:] if found[:_DIGEST] == hashlib.sha256(found[_DIGEST:]).digest() else None
