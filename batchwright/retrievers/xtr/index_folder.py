"""A token index on disk: its vectors, and the facts that they are checked against when it is opened."""

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
    """The content of ``index.json``.

    ``model`` is the hash of the model, ``vectors`` and ``owners`` are the hashes of the files, and ``bytes`` is the
    size of the vectors' file.
    """

    model: str
    documents: int
    tokens: int
    bytes: int
    vectors: str
    owners: str


class Saved(NamedTuple):
    """The content of a folder when it was read, without the vectors; ``owners`` ``(T,)`` int32 is memory-mapped."""

    folder: Path
    facts: _Facts
    owners: NDArray[np.int32]

    @property
    def model(self) -> str:
        """The hash of the model that produced the vectors."""
        return self.facts.model

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.facts.documents

    def check_unchanged(self) -> None:
        """Raise InputError if another index has since been saved to the folder."""
        if not (self.folder / _FACTS).exists() or _read_facts(self.folder) != self.facts:
            raise InputError(f"{self.folder}: replaced since it was opened; open it again and add the documents to it")


def write_saved(folder: Path, owners: NDArray[np.int32], documents: int, model: str) -> None:
    """Write owners and facts next to the vectors, which must already be in ``folder``."""
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
    """Read everything but the vectors.

    The owners are checked by hash. The vectors are checked only by size, because memory-mapping must not read them.

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
            raise InputError(f"{folder / file}: changed since it was saved; {remedy}")
    return Saved(folder, facts, np.load(folder / _OWNERS, mmap_mode="r"))


def check_place(folder: Path, opened: Saved | None) -> None:
    """Raise InputError if saving to ``folder`` would overwrite other files, or an index newer than ``opened``."""
    if not folder.exists():
        return
    if not (folder / _FACTS).exists() and any(folder.iterdir()):
        raise InputError(
            f"{folder}: contains files other than an index, which saving would delete; choose another folder"
        )
    if opened and opened.folder.resolve() == folder.resolve():
        opened.check_unchanged()


def _read_facts(folder: Path) -> _Facts:
    try:
        return _Facts.model_validate_json((folder / _FACTS).read_bytes())
    except ValidationError:
        raise InputError(f"{folder / _FACTS}: not a valid index description; build the index again") from None
