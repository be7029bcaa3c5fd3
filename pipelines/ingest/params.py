"""Parameters of the stage ``ingest``."""

from pydantic import Field

from batchwright.core.params import Params
from pipelines.ingest.sources import AnySource


class IngestParams(Params):
    """Group ``ingest``."""

    sources: list[AnySource] = Field(min_length=1)
    """Where the pairs come from; ``kind`` selects the type of each source."""
    held_out: float = Field(default=0.1, ge=0, lt=1)
    """Share of queries to hold out as the test split, which training never sees; the same queries in all domains."""
    max_reject_rate: float = Field(default=0.01, ge=0, le=1)
    """The stage fails if more than this share of a source's rows is rejected; duplicates do not count."""
