"""A token index on disk: its vectors, and the facts that they are checked against when it is opened."""

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.fingerprint import file_sha256
from batchwright.core.params import Params

Kind = Literal["exact", "compressed"]
"""``exact`` keeps every vector. ``compressed`` keeps a byte for every four dimensions (OPQ, product quantisation), in
inverted lists of which a search reads an eighth, or 64 if that is less."""

VECTORS = "index.faiss"
_OWNERS = "owners.npy"
_FACTS = "index.json"
_MOST = 2**31 - 1  # document numbers are int32
_REMEDY = "build the index again"


class _Facts(Params):
    """The content of ``index.json``.

    ``model`` is the hash of the model, ``vectors`` and ``owners`` are the hashes of the files, and ``bytes`` is the
    size of the vectors' file. ``documents`` and ``tokens`` count deleted ones too; ``deleted`` are document numbers.
    """

    model: str
    documents: int = Field(ge=0, le=_MOST)
    tokens: int = Field(ge=0)
    deleted: list[Annotated[int, Field(ge=0, le=_MOST)]]
    bytes: int = Field(ge=0)
    vectors: str
    owners: str


class Saved(NamedTuple):
    """The content of a folder when it was read, without the vectors; ``owners`` ``(T,)`` int32 is memory-mapped."""

    folder: Path
    facts: _Facts
    owners: NDArray[np.int32]

    def verify(self) -> None:
        """Raise InputError if a file is missing, or has another hash than when it was saved."""
        for file, expected in ((VECTORS, self.facts.vectors), (_OWNERS, self.facts.owners)):
            if not (self.folder / file).exists():
                raise InputError(f"{self.folder / file}: missing; {_REMEDY}")
            if file_sha256(self.folder / file) != expected:
                raise InputError(f"{self.folder / file}: changed since it was saved; {_REMEDY}")

    def check_unchanged(self) -> None:
        """Raise InputError if another index has since been saved to the folder."""
        if not (self.folder / _FACTS).exists() or _read_facts(self.folder) != self.facts:
            raise InputError(f"{self.folder}: replaced since it was opened; open it again and add the documents to it")


def write_saved(
    folder: Path, owners: NDArray[np.int32], documents: int, deleted: NDArray[np.int32], model: str
) -> None:
    """Write owners and facts next to the vectors, which must already be in ``folder``."""
    np.save(folder / _OWNERS, owners)
    facts = _Facts(
        model=model,
        documents=documents,
        tokens=len(owners),
        deleted=deleted.tolist(),
        bytes=(folder / VECTORS).stat().st_size,
        vectors=file_sha256(folder / VECTORS),
        owners=file_sha256(folder / _OWNERS),
    )
    write_json(folder / _FACTS, facts.model_dump())


def read_saved(folder: Path) -> Saved:
    """Read everything but the vectors.

    The owners are checked by hash, the vectors by size; ``Saved.verify`` checks their hash, which reads them all.

    Raises:
        InputError: there is no index, or it is damaged.
    """
    if not (folder / _FACTS).exists():
        raise InputError(f"{folder}: no index here; build one and save it there")
    facts = _read_facts(folder)
    for file, sound in (
        (VECTORS, lambda path: path.stat().st_size == facts.bytes),
        (_OWNERS, lambda path: file_sha256(path) == facts.owners),
    ):
        if not (folder / file).exists():
            raise InputError(f"{folder / file}: missing; {_REMEDY}")
        if not sound(folder / file):
            raise InputError(f"{folder / file}: changed since it was saved; {_REMEDY}")
    saved = Saved(folder, facts, np.load(folder / _OWNERS, mmap_mode="r"))
    _check_ranges(saved)
    return saved


def _check_ranges(saved: Saved) -> None:
    """Raise InputError if the facts do not fit the owners."""
    facts, owners = saved.facts, saved.owners
    fits = {
        "tokens": facts.tokens == len(owners),
        "documents": facts.documents > int(owners[-1] if len(owners) else -1),  # owners ascend
        "deleted": facts.deleted == sorted(set(facts.deleted)) and max(facts.deleted, default=-1) < facts.documents,
    }
    for name, fit in fits.items():
        if not fit:
            raise InputError(f"{saved.folder / _FACTS}: '{name}' does not fit the index; {_REMEDY}")


def check_place(folder: Path, opened: Saved | None) -> None:
    """Raise InputError if saving to ``folder`` would overwrite other files, or an index newer than ``opened``."""
    if not folder.exists():
        return
    if not (folder / _FACTS).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: holds something other than an index, which saving would delete; choose another")
    if opened and opened.folder.resolve() == folder.resolve():
        opened.check_unchanged()


def _read_facts(folder: Path) -> _Facts:
    try:
        return _Facts.model_validate_json((folder / _FACTS).read_bytes())
    except ValidationError:
        raise InputError(f"{folder / _FACTS}: not a valid index description; {_REMEDY}") from None
