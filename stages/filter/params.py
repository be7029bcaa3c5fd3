"""Parameters of the false-negative filter."""

from pydantic import Field, model_validator

from batchwright.core.params import Params

MOST_RANKS = 1000


class MineParams(Params):
    """Group ``filter.mine``."""

    count: int = Field(gt=0)
    """Hard negatives per query."""
    depth: int = Field(gt=0, le=MOST_RANKS)
    """Mine from the query's top ``depth`` documents, not counting known positives."""
    skip: int = Field(default=0, ge=0)
    """Number of top ranks to skip."""
    min_score: float | None = None
    """Minimum score of a hard negative; documents below it are too easy. Null sets no minimum."""
    sample: bool = False
    """Draw hard negatives at random from these ranks instead of taking the hardest."""

    @model_validator(mode="after")
    def _enough_ranks(self) -> "MineParams":
        if self.depth - self.skip < self.count:
            raise ValueError(f"{self.count} negatives cannot come from ranks {self.skip + 1} to {self.depth}")
        return self


class FilterParams(Params):
    """Group ``filter``."""

    vectors: str
    """The entry of ``embed.models`` used as the surrogate, which scores a query q and a document d as f(q, d)."""
    margin: float | None = Field(default=None, ge=0)
    """In the batch of a pair (q, d), another document d' counts as a false negative if
    ``f(q, d') >= f(q, d) - margin``. Set exactly one of ``margin``, ``factor`` and ``threshold``."""
    factor: float | None = Field(default=None, ge=0)
    """Instead of ``margin``: a false negative if ``f(q, d') >= f(q, d) - factor * |f(q, d)|``."""
    threshold: float | None = None
    """Instead of ``margin``: a false negative if ``f(q, d') >= threshold``."""
    near_duplicates: float = Field(default=0.9, ge=0.7, le=1)
    """Texts count as duplicates if the Jaccard similarity of their shingles is at least this. 1 requires equal words,
    ignoring only case, punctuation, white space and Unicode form."""
    consistency: int | None = Field(default=None, gt=0, le=MOST_RANKS)
    """Drop pairs whose document is not in the query's top k within its domain, where k is this number; null keeps all
    pairs."""
    mine: MineParams | None = None
    """Mine hard negatives for each query from the documents that score highest; null mines none."""

    @model_validator(mode="after")
    def _one_rule(self) -> "FilterParams":
        if sum(rule is not None for rule in (self.margin, self.factor, self.threshold)) != 1:
            raise ValueError("give one of margin, factor and threshold")
        return self
