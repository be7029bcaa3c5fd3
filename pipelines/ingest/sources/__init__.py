"""The kinds of sources, which ``kind`` in an entry of ``ingest.sources`` selects, or the name of the file."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from batchwright.core.params import with_kind
from pipelines.ingest.sources.columnar import ArrowSource, ParquetSource
from pipelines.ingest.sources.csv import CsvSource
from pipelines.ingest.sources.docstrings import DocstringsSource
from pipelines.ingest.sources.huggingface import HuggingFaceSource
from pipelines.ingest.sources.jsonl import BeirSource, JsonlSource

KINDS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
}
PACKED = (".gz", ".zst", ".bz2", ".lz4")


def kind_of(path: str) -> str | None:
    """Return the kind of source that reads files of this name, or None if the name does not say."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix not in PACKED]
    return KINDS.get(suffixes[-1]) if suffixes else None


def _kind(entry: dict[str, Any]) -> str | None:
    if "packages" in entry:
        return "docstrings"
    return "huggingface" if "name" in entry else kind_of(str(entry.get("path", "")))


AnySource = Annotated[
    ArrowSource | BeirSource | CsvSource | DocstringsSource | HuggingFaceSource | JsonlSource | ParquetSource,
    Field(discriminator="kind"),
    with_kind(_kind),
]

AnyCorpus = Annotated[
    ArrowSource | BeirSource | CsvSource | HuggingFaceSource | JsonlSource | ParquetSource,
    Field(discriminator="kind"),
    with_kind(_kind),
]
"""What can be read without queries."""
