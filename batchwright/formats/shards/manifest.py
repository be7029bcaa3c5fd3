"""What describes shards: the manifest, and the dataset card that the Hugging Face hub and ``datasets`` read."""

from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
from batchwright.core.params import Params

FILE = "manifest.json"
Format = Literal[1, 2, 3, 4, 5]


class Shard(Params):
    """One shard file: its name, content hash and size."""

    name: str
    sha256: str
    bytes: int
    rows: int
    batches: int


class SmallDomain(Params):
    """A domain that cannot fill a batch: its number of ``pairs``, and the name that its batches go by, if it has any.

    Domains that are packed together share a name.
    """

    pairs: int
    packed_as: str | None


class EpochSummary(Params):
    """One epoch: the batches ``[first_batch, first_batch + batches)``.

    ``left_over`` counts, by the names that domains are packed as, the kept pairs that are in no batch of the epoch.
    ``repeated`` counts how often a pair was packed once more. ``met_before`` is the share of co-occurrences (two pairs
    in one batch) that already occurred in an earlier epoch.

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

    ``documents`` is the number of different documents of each domain, and ``cluster_shares`` the share of a batch that
    comes from one cluster in each of its epochs, 0 if batches are random. ``likeness`` is how alike pairs of a domain
    must be for one's document to be masked for the other's query, None if nothing is masked so, and ``made_with`` are
    the parameters of the stages ``filter``, ``cluster`` and, where it replaced the hard negatives, ``mine``. Older
    manifests lack these four. ``small_domains`` says what was done with domains that cannot fill a batch. Shards of
    ``format`` 1 lack the columns that say why cells are masked (``SHARD_SCHEMA``); they are still read (``completed``).
    Those of 3 and 5 have a teacher's scores beside, and those of 4 and 5 weights and metadata.
    """

    format: Format = 2
    policy: str
    batch_size: int
    rows: int
    batches: int
    seed: int
    documents: dict[str, int] = {}
    cluster_shares: dict[str, list[float]] = {}
    likeness: dict[str, float | None] = {}
    small_domains: dict[str, SmallDomain] = {}
    made_with: dict[str, dict[str, Any]] = {}
    parameters: dict[str, Any]
    models: dict[str, str]
    epochs: list[EpochSummary]
    shards: list[Shard]

    def batches_of(self, epoch: int) -> range:
        """Return the numbers of an epoch's batches; epochs count from 0.

        Raises:
            InputError: there is no such epoch.
        """
        if not 0 <= epoch < len(self.epochs):
            raise InputError(
                f"epoch {epoch} of the shards was asked for, but they hold epochs 0 to {len(self.epochs) - 1}; "
                "train for fewer epochs, or raise pack.epochs and run the stage 'pack' again"
            )
        found = self.epochs[epoch]
        return range(found.first_batch, found.first_batch + found.batches)

    def epoch_of(self, batch: int) -> int:
        """Return the epoch, counted from 0, that a batch belongs to."""
        return sum(epoch.first_batch <= batch for epoch in self.epochs) - 1

    def packed_as(self, domain: str) -> str | None:
        """Return the name that a domain's batches go by, usually its own; None: it was left out."""
        small = self.small_domains.get(domain)
        return small.packed_as if small else domain

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


CARD = "README.md"
TEMPLATE = Path(__file__).with_name("card.md")
COLUMNS = {
    "id": "hash of the pair",
    "query": "the pair's query",
    "document": "the pair's document, which answers it",
    "domain": "where the pair is from",
    "negatives": "the pair's own hard negatives, possibly none",
    "mask": "bit j, lowest bit first: document j of the batch is no negative of this query",
    "reasons": "a byte per masked document, in their order: 0 known positive, 1 duplicate, 2 judged, 3 score",
    "hardness": "mean similarity of the query to its unmasked negatives",
    "masked_share": "share of the row's negatives that are masked",
    "cluster": "the pair's cluster",
    "scores": "a teacher's scores of the document and of each hard negative; empty if it has none",
    "weight": "what the pair's term in the loss is multiplied by",
    "metadata": "other columns of the pair's source by name, as JSON",
}
_LATER = {"scores": [3, 5], "weight": [4, 5], "metadata": [4, 5]}
"""The formats that have a column, unless all have."""


def write_card(folder: Path, manifest: Manifest) -> None:
    """Write the card of the shards in ``folder``. It makes ``datasets.load_dataset(folder)`` find the shards."""
    made_from = {"seed": manifest.seed, "models": manifest.models, "pack": manifest.parameters, **manifest.made_with}
    facts = {
        "policy": manifest.policy,
        "rows": f"{manifest.rows:,}",
        "batches": f"{manifest.batches:,}",
        "batch_size": manifest.batch_size,
        "last": manifest.batch_size - 1,
        "columns": _lines(
            f"| `{name}` | {about} |"
            for name, about in COLUMNS.items()
            if manifest.format in _LATER.get(name, [manifest.format])
        ),
        "epochs": _lines(_epoch(number, epoch) for number, epoch in enumerate(manifest.epochs, start=1)),
        "parameters": yaml.safe_dump(made_from, sort_keys=True).rstrip(),
    }
    with atomic_file(folder / CARD) as temporary:
        temporary.write_text(Template(TEMPLATE.read_text(encoding="utf-8")).substitute(facts), encoding="utf-8")


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _epoch(number: int, epoch: EpochSummary) -> str:
    measures = f"{epoch.hardness:.4f} | {epoch.unmasked_hardness:.4f} | {epoch.masked_share:.2%}"
    return f"| {number} | {epoch.batches:,} | {measures} | {epoch.repeated:,} | {epoch.met_before:.2%} |"
