"""Parameters of a round."""

from pydantic import Field, model_validator

from formats.params import Params


class RoundParams(Params):
    """Group ``rounds.NAME``: with ``models/MODEL``, of that variant, mine hard negatives for the contextual batches."""

    variant: str
    model: str
    count: int = Field(gt=0)
    """Hard negatives a query."""
    depth: int = Field(gt=0)
    """How far down the model's ranking to look."""

    @model_validator(mode="after")
    def _enough_ranks(self) -> "RoundParams":
        if self.depth < self.count:
            raise ValueError(f"{self.count} negatives cannot come from {self.depth} ranks")
        return self
