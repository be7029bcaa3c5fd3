"""Parameters of the stage ``ingest``."""

from pydantic import Field, ValidationInfo, field_validator

from batchwright.core.params import Params
from pipelines.ingest.sources import AnyCorpus, AnySource


class IngestParams(Params):
    """Group ``ingest``."""

    sources: list[AnySource] = Field(min_length=1)
    """Where the pairs come from; ``kind`` selects the type of each source. The ending of a file says it, too."""
    corpus: list[AnyCorpus] = []
    """Documents without queries, among which ``mine`` finds hard negatives for pairs of the same domain: sources of
    which only the column of documents is read, or of BEIR folders ``corpus.jsonl``."""
    held_out: float = Field(default=0.1, ge=0, lt=1)
    """Share of queries to hold out as the test split, which training never sees; the same queries in all domains."""
    dev: float = Field(default=0.0, ge=0, lt=1)
    """Share of queries to hold out as the dev split, on which training is watched (``train.common.evaluate_every``)."""
    max_reject_rate: float = Field(default=0.01, ge=0, le=1)
    """The stage fails if more than this share of a source's rows is rejected; duplicates do not count, nor do rows
    that ``labels`` leave out."""

    @field_validator("dev")
    @classmethod
    def _leaves_pairs_to_train_on(cls, dev: float, info: ValidationInfo) -> float:
        if dev + info.data.get("held_out", 0) >= 1:
            raise ValueError("together with held_out it leaves no queries to train on; lower one of them")
        return dev
