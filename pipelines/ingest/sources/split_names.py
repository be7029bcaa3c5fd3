"""The splits that a column says, by their usual names."""

from batchwright.core.errors import InputError
from batchwright.core.terminal import shown
from batchwright.formats.pairs import Split

TRAIN = frozenset({"train", "training"})
_DEV = frozenset({"dev", "development", "val", "valid", "validation", "eval", "evaluation"})
_TEST = frozenset({"test", "testing", "heldout", "holdout"})
HELD_OUT = _DEV | _TEST
_NAMES: dict[Split, frozenset[str]] = {"train": TRAIN, "dev": _DEV, "test": _TEST}


def known_split(value: object) -> Split | None:
    """Return the split that a value names, in whatever case, or None."""
    name = str(value).strip().casefold().replace("-", "").replace("_", "")
    return next((split for split, names in _NAMES.items() if name in names), None)


def split_named(file: str, row: int, column: str, value: object) -> Split:
    """Return the split that a row's value names.

    Raises:
        InputError: it names none.
    """
    split = known_split(value)
    if split is None:
        what = f"'{column}' is {shown(str(value))}" if value not in (None, "") else f"'{column}' is empty"
        raise InputError(
            f"{file}, row {row}: {what}, which is no split; write train, dev or test, or remove columns.split"
        )
    return split
