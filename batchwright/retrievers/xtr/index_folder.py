"""An index of tokens on disk: its vectors, and what they are checked by when it is opened."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256
from batchwright.core.params import Params
from batchwright.core.results import write_json

VECTORS = "index.faiss"
_OWNERS = "owners.npy"
_FACTS = "index.json"


class _Facts(Params):
    """``model`` is the hash of the model; ``vectors`` and ``owners`` those of the files."""

    model: str
    documents: int
    tokens: int
    bytes: int
    vectors: str
    owners: str


class Saved(NamedTuple):
    """What a folder held when it was read; ``owners`` ``(T,)`` int32, memory-mapped."""

    folder: Path
    facts: _Facts
    owners: NDArray[np.int32]

    @property
    def model(self) -> str:
        """The hash of the model that made the vectors."""
        return self.facts.model

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return self.facts.documents

    def check_unchanged(self) -> None:
        """Raise InputError where another index was saved to the folder since."""
        if not (self.folder / _FACTS).exists() or _read_facts(self.folder) != self.facts:
            raise InputError(f"{self.folder}: saved anew since it was opened; open it again and add to that")


def write_saved(folder: Path, owners: NDArray[np.int32], documents: int, model: str) -> None:
    """Write owners and facts beside the vectors, which are there already."""
    np.save(folder / _OWNERS, owners)
    facts = _Facts(
        model=model,
        documents=documents,
        tokens=len(owners),
        bytes=(folder / VECTORS).stat().st_size,
        vectors=file_sha256(folder / VECTORS),
        owners=file_sha256(folder / _OWNERS),
    )
    write_json(folder / _FACTS, facts.model_dump())


def read_saved(folder: Path) -> Saved:
    """Read all but the vectors, of which only the size is checked: reading them is what mapping avoids.

    Raises:
        InputError: there is no index, or it is damaged.
    """
    if not (folder / _FACTS).exists():
        raise InputError(f"{folder}: no index here; build one and save it there")
    facts, remedy = _read_facts(folder), "build the index again"
    for file, sound in (
        (VECTORS, lambda path: path.stat().st_size == facts.bytes),
        (_OWNERS, lambda path: file_sha256(path) == facts.owners),
    ):
        if not (folder / file).exists():
            raise InputError(f"{folder / file}: missing; {remedy}")
        if not sound(folder / file):
            raise InputError(f"{folder / file}: not what was saved; {remedy}")
    return Saved(folder, facts, np.load(folder / _OWNERS, mmap_mode="r"))


def check_place(folder: Path, opened: Saved | None) -> None:
    """Raise InputError where an index must not be saved: over other files, or over one newer than ``opened``."""
    if not folder.exists():
        return
    if not (folder / _FACTS).exists() and any(folder.iterdir()):
        raise InputError(f"{folder}: holds other files than an index, which saving would remove; name another folder")
    if opened and opened.folder.resolve() == folder.resolve():
        opened.check_unchanged()


def _read_facts(folder: Path) -> _Facts:
    try:
        return _Facts.model_validate_json((folder / _FACTS).read_bytes())
    except ValidationError:
        raise InputError(f"{folder / _FACTS}: does not describe an index; build the index again") from None
