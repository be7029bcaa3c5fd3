"""Small files: JSON and TSV in a canonical form, so that equal content is equal bytes, and checked NumPy arrays."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from batchwright.core.atomic import atomic_file, check
from batchwright.core.errors import InputError

SMALL = 1 << 20


def write_json(file: Path, values: Mapping[str, Any], *, durable: bool = True, indent: int | None = 2) -> None:
    """Write ``values`` atomically, with sorted keys; ``durable`` as ``atomic_file`` has it.

    Without ``indent``, all is on one line, which takes a third of the time.
    """
    content = json.dumps(values, indent=indent, sort_keys=True, ensure_ascii=False)
    with atomic_file(file, durable=durable) as temporary:
        temporary.write_text(content + "\n", encoding="utf-8")


def read_json(file: Path, made_by: str) -> dict[str, Any]:
    """Read a file that ``write_json`` wrote.

    Raises:
        InputError: the file is missing or damaged; the message says to run the stage ``made_by``.
    """
    check(file)
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{file}: no such file; run the stage '{made_by}' first") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not valid JSON ({error}); run the stage '{made_by}' again") from None
    if not isinstance(values, dict):
        raise InputError(f"{file}: expected a JSON object; run the stage '{made_by}' again")
    return values


def write_tsv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows that share their keys as a table with a header, atomically; floats get six significant digits."""
    with atomic_file(file) as temporary, temporary.open("w", newline="", encoding="utf-8") as handle:
        writer = _writer(handle, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(map(_cells, rows))


def append_tsv(file: Path, row: Mapping[str, Any]) -> None:
    """Append a row to a table that grows while others read it, as ``write_tsv`` would write it; the first brings the
    header."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", newline="", encoding="utf-8") as handle:
        writer = _writer(handle, list(row))
        if handle.tell() == 0:
            writer.writeheader()
        writer.writerow(_cells(row))


def read_tsv(file: Path, made_by: str) -> list[dict[str, str]]:
    """Read a file that ``write_tsv`` wrote; every value is a string.

    Raises:
        InputError: the file is missing; the message says to run the stage ``made_by``.
    """
    try:
        with file.open(newline="", encoding="utf-8") as handle:
            return list(csv.DictReader(handle, delimiter="\t"))
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; run the stage '{made_by}' first") from None


def read_array(
    file: Path, dtype: DTypeLike, shape: tuple[int | None, ...], made_by: str, *, mapped: bool = False
) -> NDArray[Any]:
    """Read ``file``; with ``mapped``, memory-map it instead, which keeps it open, if it has more than ``SMALL`` bytes.

    ``None`` in ``shape`` matches any length; ``made_by`` is the stage that writes the file.

    Raises:
        InputError: the file is missing or damaged, or has another dtype or shape.
    """
    check(file)
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r" if mapped and file.stat().st_size > SMALL else None)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; run the stage '{made_by}' first") from None
    except (ValueError, EOFError) as error:
        raise InputError(f"{file}: damaged ({error}); run the stage '{made_by}' again") from None
    fits = len(array.shape) == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        raise InputError(
            f"{file}: expected {np.dtype(dtype)} of shape {shape}, found {array.dtype} of shape {array.shape}; "
            f"run the stage '{made_by}' again"
        )
    return array


def _writer(handle: IO[str], columns: Sequence[str]) -> "csv.DictWriter[str]":
    return csv.DictWriter(handle, fieldnames=columns, delimiter="\t", lineterminator="\n")


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
