"""Parameters of the stage ``ingest``."""

from pydantic import Field

from batchwright.core.params import Params
from pipelines.ingest.sources import AnySource


class IngestParams(Params):
    """Group ``ingest``."""

    sources: list[AnySource] = Field(min_length=1)
    """Where the pairs come from; ``kind`` says what an entry reads."""
    held_out: float = Field(default=0.1, ge=0, lt=1)
    """Share of the queries that go to the test split, in all domains alike; training never sees them."""
    max_reject_rate: float = Field(default=0.01, ge=0, le=1)
    """The stage fails when more than this share of a source's rows is rejected; duplicates do not count."""
