"""The manifest of a shard set: its contents, what it was built from and how hard its batches are."""

from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.core.results import read_json, write_json

FILE = "manifest.json"


class Shard(Params):
    """One shard file: its name, content hash and size."""

    name: str
    sha256: str
    bytes: int
    rows: int
    batches: int


class EpochSummary(Params):
    """One epoch: the batches ``[first_batch, first_batch + batches)``.

    ``left_over`` counts, per domain, the kept pairs that are in no batch of the epoch. ``repeated`` counts how often
    a pair was packed once more. ``met_before`` is the share of co-occurrences (two pairs in one batch) that already
    occurred in an earlier epoch.

    ``hardness`` is the mean off-diagonal query-document similarity within batches, ``unmasked_hardness`` the same
    mean over the negatives that the mask keeps. ``masked_share`` is the share of negatives that are masked, and
    ``masked_by`` splits it by reason.
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
    """The content of ``manifest.json``.

    Shards of ``format`` 1 lack the columns that say why cells are masked (``SHARD_SCHEMA``); they are still read.
    """

    format: Literal[1, 2] = 2
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
        """Read and validate the ``manifest.json`` in ``folder``."""
        values = read_json(folder / FILE, made_by="pack")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise InputError(
                f"{folder / FILE}: not a valid manifest of this version ({error.error_count()} errors)"
            ) from None
