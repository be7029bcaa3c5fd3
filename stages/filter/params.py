"""Parameters of the false-negative filter."""

from pydantic import Field, model_validator

from batchwright.core.params import Params

MOST_RANKS = 1000


class MineParams(Params):
    """Group ``filter.mine``."""

    count: int = Field(gt=0)
    """Hard negatives per query."""
    depth: int = Field(gt=0, le=MOST_RANKS)
    """The last rank to take them from; known positives have no rank."""
    skip: int = Field(default=0, ge=0)
    """Ranks at the top to skip."""
    min_score: float | None = None
    """The lowest score of a hard negative: documents below it are too easy; null sets no limit."""
    sample: bool = False
    """Whether to draw hard negatives at random from these ranks; if not, the hardest are taken."""

    @model_validator(mode="after")
    def _enough_ranks(self) -> "MineParams":
        if self.depth - self.skip < self.count:
            raise ValueError(f"{self.count} negatives cannot come from ranks {self.skip + 1} to {self.depth}")
        return self


class FilterParams(Params):
    """Group ``filter``."""

    vectors: str
    """The entry of ``embed.models`` that gives the score f(q, d) of a query q and a document d."""
    margin: float | None = Field(default=None, ge=0)
    """In the batch of a pair (q, d), another document d' counts as a false negative if
    ``f(q, d') >= f(q, d) - margin``. Set exactly one of ``margin``, ``factor`` and ``threshold``."""
    factor: float | None = Field(default=None, ge=0)
    """Instead of ``margin``: a false negative if ``f(q, d') >= f(q, d) - factor * |f(q, d)|``."""
    threshold: float | None = None
    """Instead of ``margin``: a false negative if ``f(q, d') >= threshold``."""
    near_duplicates: float = Field(default=0.9, ge=0.7, le=1)
    """Texts count as duplicates from this Jaccard similarity of their shingles on; 1 requires equal words, and ignores
    only case, punctuation, white space and Unicode form."""
    consistency: int | None = Field(default=None, gt=0, le=MOST_RANKS)
    """Keep only pairs whose document is among this many best of its domain for the query; null keeps all pairs."""
    mine: MineParams | None = None
    """Mine hard negatives for each query from the documents nearest to it; null mines none."""

    @model_validator(mode="after")
    def _one_rule(self) -> "FilterParams":
        if sum(rule is not None for rule in (self.margin, self.factor, self.threshold)) != 1:
            raise ValueError("give one of margin, factor and threshold")
        return self
