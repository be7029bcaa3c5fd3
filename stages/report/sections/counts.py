"""Counts: what happened to every row of every source."""

from collections import Counter

from pydantic import Field

from batchwright.core.paths import RESULTS
from stages.report.records import Record, read_record
from stages.report.section import Section, show_long_table, show_table
from stages.report.table import NONE, Table


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

    @property
    def texts(self) -> int:
        """Number of unique texts in all domains."""
        return sum(domain.queries + domain.documents for domain in self.domains.values())


def section() -> Section:
    """Return tables of sources and domains."""
    ingested = read_ingested()
    return Section(
        id="counts",
        title="Counts",
        intro="Every row of a source either becomes a pair or is rejected for a stated reason. Pairs are split by "
        "query, so that no query is in two splits.",
        parts=[
            show_table(_source_table(ingested), "Rows of each source"),
            show_long_table(_domain_table(ingested), "Pairs of each domain"),
        ],
    )


def read_ingested() -> Ingested:
    """Read the counts of sources and domains."""
    return read_record(Ingested, RESULTS / "ingest.json", made_by="ingest")


def _source_table(ingested: Ingested) -> Table:
    rows = []
    for name, count in sorted(ingested.sources.items(), key=lambda source: int(source[0].split()[0])):
        reasons = [f"{reason} {number:,}" for reason, number in Counter(count.rejected).most_common()]
        rejected = sum(count.rejected.values())
        label = name.partition(" ")[2]
        rows.append([label, f"{count.rows:,}", f"{count.out:,}", f"{rejected:,}", ", ".join(reasons) or NONE])
    return Table(header=["Source", "In", "Out", "Rejected", "Reasons"], rows=rows, words=frozenset({0, 4}))


def _domain_table(ingested: Ingested) -> Table:
    rows = [
        [name, f"{count.train:,}", f"{count.dev:,}", f"{count.test:,}", f"{count.queries:,}", f"{count.documents:,}"]
        for name, count in sorted(ingested.domains.items())
    ]
    return Table(header=["Domain", "Train", "Dev", "Test", "Unique queries", "Unique documents"], rows=rows)
