"""The manifest of a shard set: what is in it, what it was made from and how hard it is."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.core.results import read_json, write_json

FILE = "manifest.json"


class Shard(Params):
    """One file: its name, content hash and size."""

    name: str
    sha256: str
    bytes: int
    rows: int
    batches: int


class EpochSummary(Params):
    """Batches ``[first_batch, first_batch + batches)`` are one epoch.

    ``left_over`` pairs did not fill a batch, ``repeated`` times a pair was packed again; of the meetings of
    two pairs in a batch, ``met_before`` is the share that took place in an earlier epoch, too. ``hardness``
    is the mean off-diagonal query-document similarity inside its batches, ``unmasked_hardness`` that of the
    negatives left by the mask; ``masked_by`` splits ``masked_share`` by reason.
    """

    first_batch: int
    batches: int
    left_over: dict[str, int]
    repeated: int
    met_before: float
    hardness: float
    unmasked_hardness: float
    masked_share: float
    masked_by: dict[str, float]


class Manifest(Params):
    """``manifest.json``."""

    format: int = 1
    policy: str
    batch_size: int
    rows: int
    batches: int
    seed: int
    parameters: dict[str, Any]
    models: dict[str, str]
    epochs: list[EpochSummary]
    shards: list[Shard]

    def write(self, folder: Path) -> None:
        """Write ``manifest.json`` into ``folder``."""
        write_json(folder / FILE, self.model_dump())

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read and check ``manifest.json``."""
        values = read_json(folder / FILE, made_by="pack")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise InputError(
                f"{folder / FILE}: not a manifest of this version ({error.error_count()} faults)"
            ) from None
