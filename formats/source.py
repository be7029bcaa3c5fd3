"""The pairs and vectors that clusters or negatives were made from, written down beside them."""

from pathlib import Path

from formats.params import Params
from formats.results import read_json, write_json

_FILE = "source.json"


class Source(Params):
    """``vectors`` is a name among ``embed.models``, ``weights`` the hash of that model, ``pairs`` that of the pairs."""

    vectors: str
    weights: str
    pairs: str

    def write(self, folder: Path) -> None:
        """Write ``source.json`` into an artifact's folder."""
        write_json(folder / _FILE, self.model_dump())

    @classmethod
    def read(cls, folder: Path, made_by: str) -> "Source":
        """Read the ``source.json`` of the artifact that the stage ``made_by`` writes."""
        return cls.model_validate(read_json(folder / _FILE, made_by=made_by))
