"""Parameters of the false-negative filter."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.core.terminal import hint
from stages.negatives.choice import MOST_RANKS, Choice

Cosine = Annotated[float, Field(ge=-2, le=2)]
"""A cosine, or the difference of two: beyond 2, a percentage was meant."""
Likeness = Cosine | Literal["auto"] | None
DEFAULT = "default"
"""Stands for all domains that ``likeness`` does not name."""


class FilterParams(Params):
    """Group ``filter``."""

    vectors: str
    """The entry of ``embed.models`` used as the surrogate, which scores a query q and a document d as f(q, d)."""
    likeness: Likeness | dict[str, Likeness] = None
    """In the batch of a pair (q, d), the document d' of another pair (q', d') counts as a false negative if the pairs
    are alike: the cosine of q + d and q' + d' is at least this. ``auto`` finds the limit of each domain: from there on,
    exchanging the documents of two pairs changes nothing. Most domains have no such pairs. Where two in five pairs are
    doubtful, or one in ten random pairs reach the limit, vectors know too little, and there is no limit.
    ``{shop: 0.8, default: auto}`` says it by domain; without ``default``, other domains are ``auto``."""
    margin: Cosine | None = None
    """A false negative must score nearly as high as the query's own document: ``f(q, d') >= f(q, d) - margin``. A
    negative margin asks for more than its score. Without ``likeness`` this alone decides, with it both must hold."""
    factor: float | None = Field(default=None, ge=0)
    """Instead of ``margin``: ``f(q, d') >= f(q, d) - factor * |f(q, d)|``."""
    threshold: Cosine | None = None
    """Instead of ``margin``: ``f(q, d') >= threshold``."""
    judgements: list[str] = []
    """Files of judgements, which overrule the surrogate: CSV, TSV, JSON Lines or Parquet with the columns ``query``,
    ``document`` and ``label``, ``score`` or ``verdict`` (relevant, not relevant, or empty). Put them into
    ``raw/judgements``, where DVC notices changes."""
    judged_positive: float | None = None
    """A document answers the query from this label or score on, below it does not. Null means above 0."""
    near_duplicates: float = Field(default=0.9, ge=0.7, le=1)
    """Texts count as duplicates if the Jaccard similarity of their shingles is at least this. 1 requires equal words,
    ignoring only case, punctuation, white space and Unicode form."""
    consistency: int | None = Field(default=None, gt=0, le=MOST_RANKS)
    """Drop pairs whose document is not in the query's top k within its domain, where k is this number; null keeps all
    pairs."""
    drop_doubtful: bool = False
    """Drop doubtful pairs: those whose own document scores no higher than one in five documents of the domain. They are
    counted in any case. Pairs with a vector of zeros stay."""
    mine: Choice | None = None
    """Mine hard negatives for each query from the documents that the surrogate scores highest; null mines none."""

    @property
    def ranks(self) -> int:
        """How many documents are ranked for each query, not counting known positives."""
        return max(self.consistency or 0, self.mine.depth if self.mine else 0)

    def likeness_of(self, domain: str) -> Likeness:
        """The likeness that a domain asks for."""
        if not isinstance(self.likeness, dict):
            return self.likeness
        return self.likeness.get(domain, self.likeness.get(DEFAULT, "auto"))

    def check_domains(self, domains: Sequence[str]) -> None:
        """Raise InputError if ``likeness`` names a domain that is not there."""
        named = self.likeness if isinstance(self.likeness, dict) else {}
        if unknown := sorted(named.keys() - {*domains, DEFAULT}):
            raise InputError(
                f"filter.likeness: unknown domain {unknown[0]!r}{hint(unknown[0], domains)}; "
                f"the domains are {', '.join(sorted(domains))}"
            )

    @model_validator(mode="after")
    def _one_rule(self) -> "FilterParams":
        given = sum(rule is not None for rule in (self.margin, self.factor, self.threshold))
        likeness = self.likeness.values() if isinstance(self.likeness, dict) else [self.likeness]
        if given > 1 or not (given or None not in likeness):
            raise ValueError("give one of margin, factor and threshold, or likeness, or likeness and one of them")
        return self
