"""The folder ``data`` that shards belong to, as far as it is there."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from batchwright.core.errors import InputError
from batchwright.core.paths import NEGATIVES, PAIRS, REJECTS, SHARDS, VECTORS
from batchwright.core.terminal import hint
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import domains, read_columns, read_rejects
from batchwright.formats.shards import ShardSet
from batchwright.formats.vectors import DomainVectors, VectorStore


def open_shards(name: str) -> ShardSet:
    """Open a folder of shards, or the one of that name in ``data/shards``.

    Raises:
        InputError: there are none.
    """
    folder = Path(name) if Path(name).is_dir() else SHARDS / name
    if not folder.is_dir():
        known = [entry.name for entry in sorted(SHARDS.glob("*")) if entry.is_dir()]
        remedy = hint(name, known) or "; run dvc repro pack in the project's folder, or name a folder of shards"
        raise InputError(f"{name}: no such folder, and no shards of this name in {SHARDS}{remedy}")
    return ShardSet.open(folder)


@dataclass(frozen=True)
class Artifacts:
    """The artifacts in ``data``, the folder that the folder of a shard set's folder is in."""

    data: Path
    _ids: dict[str, pa.Array] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, shards: ShardSet) -> "Artifacts":
        """Return those that a shard set was made of, and with."""
        return cls(Path(os.path.relpath(shards.folder.resolve().parent.parent)))

    @property
    def domains(self) -> list[str]:
        """The domains of the pairs, empty if there are no pairs."""
        return domains(self._pairs) if self._pairs.is_dir() else []

    def columns(self, domain: str, *names: str) -> pa.Table:
        """Read some columns of a domain's pairs."""
        return read_columns(self._pairs, domain, *names)

    def train_ids(self, domain: str) -> pa.Array:
        """Return the ids of a domain's training pairs, to whose rows negatives refer."""
        if domain not in self._ids:
            table = self.columns(domain, "id", "split")
            self._ids[domain] = table.filter(pc.match_substring(table["split"], "train"))["id"].combine_chunks()
        return self._ids[domain]

    def rejects(self) -> pa.Table | None:
        """Return the rejected rows, None if they are not there."""
        file = self.data / REJECTS.name
        return read_rejects(file) if file.exists() else None

    def negatives(self, domain: str, pairs: int) -> Negatives:
        """Read what the filter says about a domain's training ``pairs``."""
        return Negatives.read(self.data / NEGATIVES.name, domain, pairs)

    def vectors(self, domain: str, weights: str) -> DomainVectors | None:
        """Memory-map the vectors of the model with these weights, None if they are not there."""
        for encoder in sorted((self.data / VECTORS.name).glob("*/encoder.json")):
            store = VectorStore.open(encoder.parent)
            if store.weights == weights:
                return store.of(domain, checked=False)
        return None

    @property
    def _pairs(self) -> Path:
        return self.data / PAIRS.name
