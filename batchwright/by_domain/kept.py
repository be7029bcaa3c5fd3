"""Finished work that a later run goes on from: what there is to say about some files, and their fingerprint."""

import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
from batchwright.core.fingerprint import files_fingerprint, fingerprint
from batchwright.core.runtime import scratch

Values = dict[str, Any]


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
    found: Values = read_json(ledger, made_by="")["values"]
    return found


def kept(ledger: Path, files: Sequence[Path]) -> Values | None:
    """Return what ``keep`` recorded about ``files``, or None if there is nothing, or ledger or files are damaged."""
    if not ledger.exists():
        return None
    try:
        found = read_json(ledger, made_by="")
        values: Values = found["values"]
        if found["checked"] == _fingerprint(files, values):
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
