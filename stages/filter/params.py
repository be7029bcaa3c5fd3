"""Parameters of the false-negative filter."""

from pydantic import Field, model_validator

from formats.params import Params

MOST_RANKS = 1000


class MineParams(Params):
    """Group ``filter.mine``: hard negatives of each query among its nearest documents that are no positives."""

    count: int = Field(gt=0)
    """Hard negatives a query."""
    depth: int = Field(gt=0, le=MOST_RANKS)
    """How far down the ranking to look."""
    skip: int = Field(default=0, ge=0)
    """Ranks at the top to leave out."""
    min_score: float | None = None
    """Documents that score lower are left out: too easy."""
    sample: bool = False
    """Draw them at random among those left, instead of taking the hardest."""

    @model_validator(mode="after")
    def _enough_ranks(self) -> "MineParams":
        if self.depth - self.skip < self.count:
            raise ValueError(f"{self.count} negatives cannot come from ranks {self.skip + 1} to {self.depth}")
        return self


class FilterParams(Params):
    """Group ``filter``: one of ``margin``, ``factor`` and ``threshold`` says which scores make a false negative."""

    vectors: str
    """Which of ``embed.models`` is the surrogate f."""
    margin: float | None = Field(default=None, ge=0)
    """A document d' is a false negative of q where f(q, d') >= f(q, d) - margin."""
    factor: float | None = Field(default=None, ge=0)
    """... where f(q, d') >= f(q, d) - factor * |f(q, d)|."""
    threshold: float | None = None
    """... where f(q, d') >= threshold."""
    near_duplicates: float = Field(default=0.9, ge=0.7, le=1)
    """Texts are one where their shingles' Jaccard similarity is this high; at 1 only case, form and such may differ."""
    consistency: int | None = Field(default=None, gt=0, le=MOST_RANKS)
    """Leave a pair out unless its document is among the best this many of its domain for the query."""
    mine: MineParams | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> "FilterParams":
        if sum(rule is not None for rule in (self.margin, self.factor, self.threshold)) != 1:
            raise ValueError("give one of margin, factor and threshold")
        return self
