"""Provenance: the pairs and vectors that clusters or negatives were computed from, stored next to them."""

from pathlib import Path

from batchwright.core.files import read_json, write_json
from batchwright.core.params import Params

_FILE = "provenance.json"


class Provenance(Params):
    """What an artifact was computed from."""

    vectors: str
    """The entry of ``embed.models`` that was used."""
    weights: str
    """Hash of the model that produced the vectors."""
    pairs: str
    """Hash of the pairs."""

    def write(self, folder: Path) -> None:
        """Write ``provenance.json`` into an artifact's folder."""
        write_json(folder / _FILE, self.model_dump())

    @classmethod
    def read(cls, folder: Path, made_by: str) -> "Provenance":
        """Read the ``provenance.json`` of an artifact that the stage ``made_by`` writes."""
        return cls.model_validate(read_json(folder / _FILE, made_by=made_by))
