"""What the report shows, read from the artifacts of the other stages."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from formats.clusters import read_draws
from stages.report.records import Record, read_record, read_rows

POLICIES = ("contextual", "random")


class SourceCount(Record):
    """Rows of one source: read, kept, rejected by reason."""

    rows: int = Field(alias="in")
    out: int
    rejected: dict[str, int]


class DomainCount(Record):
    """Pairs of a domain by split, and its unique texts on each side."""

    train: int
    test: int
    queries: int
    documents: int


class Ingested(Record):
    """``results/ingest.json``; sources are named ``<number> <label>``."""

    sources: dict[str, SourceCount]
    domains: dict[str, DomainCount]


class ClusterCount(Record):
    """A domain in ``results/cluster.json``."""

    pairs: int


class Batch(Record):
    """One row of ``results/pack/POLICY.tsv``."""

    domain: str
    hardness: float
    unmasked_hardness: float
    masked_share: float


class PackSummary(Record):
    """``results/pack/POLICY.json``: measures are means over batches."""

    batches: int
    pairs: int
    left_over: int
    hardness: float
    unmasked_hardness: float
    masked_share: float
    masked_by: dict[str, float]


class Step(Record):
    """One row of ``results/train/NAME.tsv``; ``z`` and ``missed_positives`` are XTR's."""

    step: int
    loss: float
    accuracy: float
    z: float | None = None
    missed_positives: float | None = None


@dataclass(frozen=True, kw_only=True)
class Packed:
    """The batches of one policy, in all and one by one."""

    summary: PackSummary
    batches: list[Batch]


def read_ingested(file: Path) -> Ingested:
    """Counts of sources and domains."""
    return read_record(Ingested, file, made_by="ingest")


def read_cluster_sizes(metrics: Path, clusters: Path) -> dict[str, NDArray[np.int64]]:
    """Sizes of all clusters by domain, ``(K,)`` each, in the first draw."""
    domains = read_record(dict[str, ClusterCount], metrics, made_by="cluster")
    return {name: read_draws(clusters, name, count.pairs)[0].sizes for name, count in domains.items()}


def read_packed(folder: Path) -> dict[str, Packed]:
    """Batches by policy."""
    return {policy: _read_policy(folder, policy) for policy in POLICIES}


def read_curves(folder: Path, variant: str, rounds: Iterable[str]) -> dict[str, list[Step]]:
    """Training curves of a variant, by its batches: of both policies and of these rounds."""
    files = {"contextual": folder / f"{variant}.tsv"}
    files |= {name: folder / f"{variant}-{name}.tsv" for name in ("random", *rounds)}
    return {policy: read_rows(Step, file, made_by="train") for policy, file in files.items()}


def _read_policy(folder: Path, policy: str) -> Packed:
    return Packed(
        summary=read_record(PackSummary, folder / f"{policy}.json", made_by="pack"),
        batches=read_rows(Batch, folder / f"{policy}.tsv", made_by="pack"),
    )
