"""User errors of independent work, wherever it runs: saved as files, and raised together when all is done."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import fingerprint

Item = TypeVar("Item")


def guarded(work: Callable[[Item], None], errors: Path) -> Callable[[Item], None]:
    """Wrap ``work`` so that an InputError is saved in the folder ``errors``, for ``raise_errors``.

    One raised in a worker of Beam would reach the user as a traceback inside a RuntimeError.
    """

    def call(item: Item) -> None:
        try:
            work(item)
        except InputError as error:
            save(str(error), errors)

    return call


def save(element: object, folder: Path) -> None:
    """Save a JSON-serialisable element in ``folder`` for the driver; saving it again changes nothing."""
    with atomic_file(folder / f"{fingerprint(element)}.json", durable=False) as temporary:
        temporary.write_text(json.dumps(element), encoding="utf-8")


def saved(folder: Path) -> list[Any]:
    """The elements that workers saved in ``folder``, in an order that depends only on their content."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def raise_errors(folder: Path) -> None:
    """Raise the user errors that workers saved in ``folder``, if any, as one InputError."""
    if messages := sorted(saved(folder)):
        raise InputError("\n".join(messages))
