"""The kinds of sources, one per module, which ``kind`` in an entry of ``ingest.sources`` selects."""

from typing import Annotated

from pydantic import Field

from pipelines.ingest.sources.columnar import ArrowSource, ParquetSource
from pipelines.ingest.sources.csv import CsvSource
from pipelines.ingest.sources.docstrings import DocstringsSource
from pipelines.ingest.sources.huggingface import HuggingFaceSource
from pipelines.ingest.sources.jsonl import BeirSource, JsonlSource

AnySource = Annotated[
    ArrowSource | BeirSource | CsvSource | DocstringsSource | HuggingFaceSource | JsonlSource | ParquetSource,
    Field(discriminator="kind"),
]
