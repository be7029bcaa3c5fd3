"""Doubt texts that are hardly meant as they stand: lists and objects as text, and documents that have labels inside."""

import json
import re
import shlex
from collections.abc import Sequence

from batchwright.core.errors import InputError
from batchwright.core.terminal import shown
from pipelines.ingest.sources import kind_of
from project.add.columns import Table
from project.add.kinds import Entry, listed, with_jq
from project.add.values import distinct, filled, label_pair
from project.add.words import is_about_one_side, names_a_label

_SHOWN = 4
_MARKED = re.compile(r"""=?"[^"]*"|b".*"|b?'.*'|\[\s*(["'{].*)?\]|\{\s*["'].*\}""", re.DOTALL)
"""A text in quotation marks, a formula of one, or bytes, a list or an object as Python and JSON print it."""


def check_texts(table: Table, columns: Entry, named: Entry, name: str) -> None:
    """Doubt the texts of columns that were guessed, not ``named``.

    Raises:
        InputError: most texts stand in marks, or documents have labels or scores.
    """
    sides = dict.fromkeys(columns.get("negatives", []), "negatives")
    sides |= {columns["query"]: "query", columns["document"]: "document"}
    for column, side in sides.items():
        option = shlex.quote(column)
        keep = f"--{side} {option}" + (f", or leave them out with --ignore {option}" if side == "negatives" else "")
        if side not in named:
            _check_marks(table[column], column, keep, name)
            if side == "document" and not is_about_one_side(column):  # all passages of a row, not its positive ones
                _check_labels(table[column], column, keep, name)


def _check_marks(values: Sequence[object], column: str, keep: str, name: str) -> None:
    texts = [value.strip() for value in filled(values) if isinstance(value, str)]
    marked = [text for text in texts if _MARKED.fullmatch(text)]
    if 2 * len(marked) > len(texts):
        raise InputError(
            f"{name}: most texts of column '{column}' stand in marks, such as {shown(marked[0])}: take them away (in "
            "CSV, the space before a quotation mark, too), or write lists and objects into JSON Lines or Parquet; or "
            f"keep them with {keep}"
        )


def _check_labels(values: Sequence[object], column: str, keep: str, name: str) -> None:
    """Doubt documents of a row's list of which some may be no answers, since they have labels or scores."""
    items = [item for value in values if isinstance(value, list) for item in value if isinstance(item, dict)]
    for field in dict.fromkeys(key for item in items for key in item if names_a_label(key)):
        found = distinct([item.get(field) for item in items])
        if not found or (len(found) == 1 and label_pair(found)):
            continue
        command = f": {with_jq(f'del(.{json.dumps(column)}) + .{json.dumps(column)}[]', name)}"
        raise InputError(
            f"{name}: the documents in '{column}' have '{field}' ({listed(map(str, found), _SHOWN)}), which may say "
            f"which of them answer the query; keep all with {keep}, or write a row for each document"
            f"{command if kind_of(name) == 'jsonl' else ''}"
        )
