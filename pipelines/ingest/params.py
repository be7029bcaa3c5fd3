"""Parameters of the stage ``ingest``."""

from pydantic import Field

from formats.params import Params
from pipelines.ingest.sources import AnySource


class IngestParams(Params):
    """What is read, which share of the queries is held out, and how many bad rows are too many.

    ``max_reject_rate`` is a share of each source's rows; duplicates do not count.
    """

    sources: list[AnySource] = Field(min_length=1)
    held_out: float = Field(default=0.1, ge=0, lt=1)
    max_reject_rate: float = Field(default=0.01, ge=0, le=1)
