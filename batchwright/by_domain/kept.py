"""Finished work that a later run goes on from: files with a ledger, and parts of a domain."""

import hashlib
import itertools
import pickle
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from batchwright.by_domain.spread import Spread
from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
from batchwright.core.fingerprint import files_fingerprint, fingerprint
from batchwright.core.runtime import beam_is_asked, scratch

Values = dict[str, Any]
_DIGEST = hashlib.sha256().digest_size


def keep(ledger: Path, files: Sequence[Path], values: Values) -> None:
    """Record that ``files`` are finished, and ``values``.

    Nothing is fsynced: what a power failure damages, ``kept`` notices.
    """
    write_json(ledger, {"values": values, "checked": _fingerprint(files, values)}, durable=False, indent=None)


def read_ledger(ledger: Path) -> Values:
    """Return what ``keep`` recorded just now, here or in another process.

    Raises:
        InputError: it is not there.
    """
    if not ledger.exists():
        raise InputError(f"{ledger}: was not written; all processes must share the folder BATCHWRIGHT_SCRATCH")
    values: Values = read_json(ledger, made_by="")["values"]
    return values


def kept(ledger: Path, files: Sequence[Path]) -> Values | None:
    """Return what ``keep`` recorded about ``files``, or None if there is nothing, or ledger or files are damaged."""
    if not ledger.exists():
        return None
    try:
        content = read_json(ledger, made_by="")
        values: Values = content["values"]
        if content["checked"] == _fingerprint(files, values):
            return values
    except (InputError, KeyError, OSError):
        pass
    print(f"warning: {ledger.parent}: damaged; this part of the work is done again", file=sys.stderr)
    return None


def forget_others(stage: str, names: Collection[str]) -> None:
    """Remove what earlier runs kept in the scratch folder of ``stage``, but for the folders ``names``."""
    for folder in scratch(stage).iterdir():
        if folder.name not in names:
            shutil.rmtree(folder)


def _fingerprint(files: Sequence[Path], values: Values) -> str:
    return fingerprint(files_fingerprint(files), values)


class KeptMap:
    """A ``Map`` that keeps each result in a file of ``folder``, so that a killed run goes on from there.

    The calls are numbered: a run that goes on must make the same calls with the same items. Runs with Beam make other
    calls (``unless_beam``), which are kept apart.
    """

    def __init__(self, folder: Path, spread: Spread, desc: str) -> None:
        self._folder = (folder / "beam" if beam_is_asked() else folder).resolve()
        self._spread, self._desc = spread, desc
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
        self._spread(partial(_do_part, work), waiting, desc=f"{self._desc}, step {call}", unit="part")
        return map(_load, results)


def _do_part(work: Callable[[Any], Any], result: Path) -> None:
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
        content = memoryview(file.read_bytes())
    except OSError:
        return None
    digest, value = content[:_DIGEST], content[_DIGEST:]
    return value if digest == hashlib.sha256(value).digest() else None
