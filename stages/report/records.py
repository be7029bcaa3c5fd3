"""Results of other stages as typed records, and those of ingestion and packing, which several sections show."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv
from batchwright.core.paths import RESULTS

T = TypeVar("T")


class Record(BaseModel):
    """The fields of a result that the report needs; others are ignored."""

    model_config = ConfigDict(frozen=True)


def read_record(kind: type[T], file: Path, made_by: str) -> T:
    """Read a JSON result as ``kind``; raise InputError if it is missing or malformed."""
    return _validate(kind, read_json(file, made_by), file, made_by)


def read_rows(kind: type[T], file: Path, made_by: str) -> list[T]:
    """Read the rows of a TSV result as ``kind``; raise InputError if it is missing or malformed."""
    return _validate(list[kind], read_tsv(file, made_by), file, made_by)  # type: ignore[valid-type]


def _validate(kind: type[T], values: Any, file: Path, made_by: str) -> T:
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise InputError(f"{file}, at {where}: {fault['msg']}; run the stage '{made_by}' again") from None


class SourceCount(Record):
    """Rows of one source: read, kept, and rejected by reason."""

    rows: int = Field(alias="in")
    out: int
    rejected: dict[str, int]


class DomainCount(Record):
    """Pairs of a domain by split, and its unique queries and documents."""

    train: int
    dev: int = 0
    test: int
    queries: int
    documents: int


class Ingested(Record):
    """``results/ingest.json``; sources are named ``<number> <label>``."""

    sources: dict[str, SourceCount]
    domains: dict[str, DomainCount]

    @property
    def pairs(self) -> int:
        """Number of pairs in all domains."""
        return sum(domain.train + domain.dev + domain.test for domain in self.domains.values())


def read_ingested() -> Ingested:
    """Read the counts of sources and domains."""
    return read_record(Ingested, RESULTS / "ingest.json", made_by="ingest")


class FilteredDomain(Record):
    """How alike pairs must be to be masked by score, or why ``likeness: auto`` found no limit."""

    likeness: float | None
    no_limit_because: str = ""


def read_filtered() -> dict[str, FilteredDomain]:
    """Read what the filter found in each domain."""
    return read_record(dict[str, FilteredDomain], RESULTS / "filter.json", made_by="filter")


class PackedDomain(Record):
    """The share of each epoch's batches that is hard, and why; ``because`` is empty if the shares were given."""

    cluster_share: list[float] = []
    because: str = ""


class PackSummary(Record):
    """``results/pack/POLICY.json``; the measures are means over batches."""

    batches: int
    left_over: int
    masked_by: dict[str, float]
    domains: dict[str, PackedDomain] = {}


class PackedBatch(Record):
    """One row of ``results/pack/POLICY.tsv``."""

    epoch: int
    domain: str
    unmasked_hardness: float
    masked_share: float


def read_pack_summaries() -> dict[str, PackSummary]:
    """Read the summary of each policy."""
    return {policy: read_record(PackSummary, _packed(policy, "json"), made_by="pack") for policy in _policies()}


def read_packed_batches() -> dict[str, list[PackedBatch]]:
    """Read all batches of each policy."""
    return {policy: read_rows(PackedBatch, _packed(policy, "tsv"), made_by="pack") for policy in _policies()}


def _policies() -> list[str]:
    """Return the names of all policies that have a result.

    Raises:
        InputError: there are none.
    """
    folder = RESULTS / "pack"
    if not (names := sorted({file.stem for file in folder.glob("[!.]*")})):
        raise InputError(f"{folder}: no such results; run the stage 'pack' first")
    return names


def _packed(policy: str, kind: str) -> Path:
    return RESULTS / "pack" / f"{policy}.{kind}"
